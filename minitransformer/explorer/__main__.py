"""Write the running example into the page: python -m minitransformer.explorer."""

from minitransformer.explorer import example_data, page_folder, write_data

if __name__ == "__main__":
    path = page_folder() / "data.js"
    write_data(example_data(), path)
    print(f"wrote {path}")
