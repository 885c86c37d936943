"""The page about the API: all of it, of our own origin alone, whatever texts say."""

from __future__ import annotations

from html.parser import HTMLParser

from cpsched.site.serve.reference import reference_page
from tests.serve.serving import asking


class Page(HTMLParser):
    """What a browser finds in a page. Mutable."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.texts = list[tuple[str, dict[str, str | None]]](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)


def test_each_request_and_each_kind_of_answer_is_there() -> None:
    """Without a token, from everywhere, as the live page; links lead to what the page has or to our own files."""
    with asking() as client:
        document = client.get("/v1/openapi.json").json()
    with asking(address="192.0.2.1") as client:
        answer = client.get("/docs")
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    page = Page(answer.text)
    requests = {f"{method.upper()} {path}" for path, of_path in document["paths"].items() for method in of_path}
    assert len(requests) > 12
    assert requests <= set(page.texts)
    anchors = {f"#{attributes['id']}" for _, attributes in page.tags if "id" in attributes}
    assert anchors == {f"#{name}" for name in document["components"]["schemas"]}
    links = {attributes["href"] for _, attributes in page.tags if "href" in attributes}
    assert links - anchors == {"icon.svg", "page.css", "v1/openapi.json"}
    assert not {"script", "style", "iframe", "img"} & {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") or name in ("style", "src") for _, found in page.tags for name in found)


def test_hostile_texts_are_texts() -> None:
    """Whatever a document says in any place of it, the page has the tags of a harmless one."""

    def made(text: str) -> Page:
        schema = {"type": text, "description": text, "enum": [text]}
        properties = {text: schema, "a": {"$ref": text}, "b": {"type": text, "maximum": text}, "c": {"items": schema}}
        content = {text: {"schema": schema}}
        operation = {
            "description": text,
            "parameters": [{"name": text, "schema": schema, "description": text}],
            "requestBody": {"description": text, "content": content},
            "responses": {text: {"description": text, "content": content}},
        }
        return Page(
            reference_page(
                {
                    "info": {"description": text},
                    "paths": {text: {text: operation}},
                    "components": {"schemas": {text: {"description": text, "properties": properties}}},
                }
            )
        )

    hostile, harmless = made("\"'><script>alert(1)</script><img src=x onerror=y>&lt;b>"), made("text")
    assert [(tag, found.keys()) for tag, found in hostile.tags] == [(tag, found.keys()) for tag, found in harmless.tags]
    assert len(hostile.texts) == len(harmless.texts)
