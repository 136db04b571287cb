"""Markdown of books and models as HTML that is safe to show: what is rendered is always sanitised last."""
