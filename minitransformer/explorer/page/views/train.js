const TrainView = { render(content) { content.append("Train"); } };
