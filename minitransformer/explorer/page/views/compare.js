const CompareView = { render(content) { content.append("Compare"); } };
