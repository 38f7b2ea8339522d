"""An app to try the library on: views with every kind of answer, and rows that count what was done."""
