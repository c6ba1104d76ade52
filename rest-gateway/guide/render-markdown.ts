import { Marked, type RendererObject, type Token, type Tokens } from "marked";
import { Html, html } from "#rest-gateway/pages";
import { highlight } from "./highlight.ts";

export type GuideSection = {
  /** The anchor; null for the part before the first heading of the second level. */
  readonly anchor: string | null;
  readonly heading: string;
  readonly level: number;
  /** The text without markup, for the search. */
  readonly text: string;
};

export type RenderedMarkdown = {
  readonly title: string;
  readonly content: Html;
  readonly sections: readonly GuideSection[];
};

/** Returns the address of a link; null for files that the guide does not serve. */
type ResolveLink = (target: string) => string | null;

/** The number of columns above which tables are read row by row on a phone, with the column's name before each cell. */
const MAX_UNLABELLED_COLUMNS = 2;

/** Renders a page of this repository. HTML in it is shown as text. */
export function renderMarkdown(source: string, resolveLink: ResolveLink): RenderedMarkdown {
  const marked = new Marked();
  const tokens = marked.lexer(source);
  const sections = toSections(tokens);
  // The headings are rendered in the order in which the sections were found.
  const anchors = sections.flatMap(({ anchor }) => anchor ?? []).values();
  marked.use({ renderer: makeRenderer(anchors, resolveLink) });
  const body = tokens.filter((token) => !(token.type === "heading" && token.depth === 1));
  return { title: sections[0]!.heading, content: new Html(marked.parser(body)), sections };
}

function makeRenderer(anchors: Iterator<string>, resolveLink: ResolveLink): RendererObject {
  return {
    heading({ tokens, depth }) {
      const anchor = anchors.next().value!;
      const content = new Html(this.parser.parseInline(tokens));
      return html`<h${depth} id="${anchor}">${content} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${depth}>\n`
        .text;
    },
    code({ text, lang = "" }) {
      const [language = "", file] = lang.split(" ");
      const kind = language === "" || language === "text" ? html` class="output"` : null;
      const block = html`<pre${kind} tabindex="0"><code>${highlight(text, language)}</code></pre>`;
      return file ? html`<figure><figcaption>${file}</figcaption>${block}</figure>\n`.text : `${block.text}\n`;
    },
    table({ header, rows }) {
      const render = (cell: Tokens.TableCell) => new Html(this.parser.parseInline(cell.tokens));
      const hasLabels = header.length > MAX_UNLABELLED_COLUMNS;
      const label = (column: number) =>
        hasLabels && column > 0 ? html` data-label="${toPlainText(header[column]!.text)}"` : null;
      return html`<div class="scroll" tabindex="0"><table>
<thead><tr>${header.map((cell) => (cell.text === "" ? html`<td></td>` : html`<th scope="col">${render(cell)}</th>`))}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map((cell, column) => html`<td${label(column)}>${render(cell)}</td>`)}</tr>\n`)}</tbody></table></div>\n`
        .text;
    },
    link({ href, text, tokens }) {
      const content = new Html(this.parser.parseInline(tokens));
      // An address that is shown as text is the target of its link.
      const address = text === href ? href : resolveLink(href);
      return address === null ? content.text : html`<a href="${address}">${content}</a>`.text;
    },
    image({ href, text }) {
      const address = resolveLink(href);
      return address === null ? html`${text}`.text : html`<img src="${address}" alt="${text}" loading="lazy">`.text;
    },
    html: ({ text }) => html`${text}`.text,
  };
}

/** Splits tokens into sections. The first section is the page's title, with the text up to the first heading. */
function toSections(tokens: readonly Token[]): GuideSection[] {
  const used = new Map<string, number>();
  const starts = tokens.flatMap((token, index) => (token.type === "heading" ? index : []));
  return starts.map((start, index) => {
    const { text, depth: level } = tokens[start] as Tokens.Heading;
    const heading = toPlainText(text);
    const body = tokens.slice(start + 1, starts[index + 1]).map(({ raw }) => raw);
    return { anchor: level === 1 ? null : toAnchor(heading, used), heading, level, text: toPlainText(body.join("")) };
  });
}

/** Makes an anchor as GitHub does; the second heading of the same name gets a number. */
function toAnchor(heading: string, used: Map<string, number>): string {
  const anchor = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
  const count = used.get(anchor) ?? 0;
  used.set(anchor, count + 1);
  return count === 0 ? anchor : `${anchor}-${count}`;
}

function toPlainText(markdown: string): string {
  return markdown
    .replace(/^```.*$|^\|[ |:-]+\|$/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\*\*|`/g, "")
    .replace(/^\| | ?\|$/gm, "")
    .replace(/(?<!\\)\| /g, "· ")
    .replaceAll("\\|", "|")
    .replace(/\s+/g, " ")
    .trim();
}
