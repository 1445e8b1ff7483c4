"""Reasons of bad rows, each the same text for all rows with that fault, and their remedies."""

ANOTHER_LENGTH = "another number of fields"
TARGET_NO_NUMBER = "target is not a number"
NO_NUMBER = "not a number"
NOT_FINITE = "not finite"
NO_TIME = "not a time"
NO_BOOLEAN = "not true or false"
BAD_ENCODING = "bad encoding"
LONE_SURROGATE = "half of a surrogate pair"
UNCLOSED_QUOTE = "unclosed quote"
STRAY_RETURN = "stray carriage return"
MALFORMED_JSON = "malformed JSON"
UNKNOWN_COLUMN = "unknown column"
LABEL_TOO_LONG = "label too long"
NO_LABEL = "not a label"

REMEDIES = {
    ANOTHER_LENGTH: "fix the row: it needs a field for each column",
    TARGET_NO_NUMBER: "fix the value or leave the row out",
    NO_NUMBER: "fix the value, leave it empty if it is missing, declare the column a category, or "
    "pass the number format, such as --decimal ,",
    NOT_FINITE: "give a number below 1.8e308, or leave the value empty if it is missing",
    NO_TIME: "fix the value, or pass the format of the column, such as --time-format",
    NO_BOOLEAN: "write true or false, or leave the value empty if it is missing",
    BAD_ENCODING: "save the file as UTF-8, or name the encoding, such as --encoding cp1252",
    LONE_SURROGATE: "write both halves of the pair, such as \\ud83d\\ude00, or the letter itself",
    UNCLOSED_QUOTE: "close the quote, or double a quote that belongs to the value",
    STRAY_RETURN: "end lines by a newline, with or without a carriage return before it",
    MALFORMED_JSON: "write one JSON object a line",
    UNKNOWN_COLUMN: "drop the key from the row, or give it to a row near the beginning",
    LABEL_TOO_LONG: "shorten or hash the label, or drop the column",
    NO_LABEL: "give a string or a number, or null if it is missing, or drop the column",
}
