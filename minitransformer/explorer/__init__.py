"""The explorer: a page for the browser that shows every number of a tiny Transformer, forward and backward.

Reading order: `export` (a model as a file that the page reads), `attention` (the same for a model that is too large),
`pair` (two models on one page), `writing` (how a source is written as text), `folder` (the page's files) and `server`
(the page on this computer). `page/` is the page itself. Its `data.js` has the running example, and this command writes
it again:

    python -m minitransformer.explorer

`minitransformer explore RUN` shows the page with a model of your own.
"""

from minitransformer.explorer.attention import attention_data, sentences_data
from minitransformer.explorer.export import check_model, example_data, model_data, write_data
from minitransformer.explorer.folder import page_folder, write_page
from minitransformer.explorer.server import serve
from minitransformer.explorer.writing import Writing, example_writing, writing_of
