"""The history of groups as one self-contained HTML file."""
