"""What the lessons share and none teaches: their checks, pictures, tables and judges, and what puts them into pages."""
