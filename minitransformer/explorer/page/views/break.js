const BreakView = { render(content) { content.append("Break"); } };
