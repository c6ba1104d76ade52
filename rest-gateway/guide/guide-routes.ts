import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path/posix";
import {
  contentResponse,
  dispatchMethod,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  notFound,
  type TaggedContent,
  tagContent,
} from "#http";
import { type Html, html, MARK, makeRenderPage, type RenderPage } from "#rest-gateway/pages";
import { DOCUMENT_ROOT, type GuidePage, PAGE_INDEX, readGuidePages } from "./guide-pages.ts";
import { type GuideSearchResult, MAX_QUERY_LENGTH, makeSearch } from "./guide-search.ts";
import type { GuideSection, RenderedMarkdown, renderMarkdown } from "./render-markdown.ts";

const GUIDE_PATH = "/docs/guide";
const SEARCH_PATH = `${GUIDE_PATH}/search`;

/** The scripts that pages load, and the folders that have them. */
const SCRIPTS = new Map([
  ["search-field.js", "."],
  ["own-address.js", "."],
  ["copy-buttons.js", "../pages"],
]);

const PICTURE_FOLDER = "docs/pictures/";
const PICTURE = /^pictures\/(?<name>[\w-]+)\.(?<extension>png|svg)$/;
const PICTURE_TYPES: Readonly<Record<string, string>> = { png: "image/png", svg: "image/svg+xml" };

const EXTERNAL = /^[a-z]+:/;
/** The address of the service in examples. */
const EXAMPLE_ORIGIN = /^http:\/\/127\.0\.0\.1:3000(?=\/)/;

/** The number of sections below which a page has no list of them. */
const MIN_LISTED_SECTIONS = 3;

const NO_QUERY = html`<p class="quiet">Enter a word: a setting, an error code, a header.</p>`;

/** Serves `/docs/guide`: the documentation, rendered from the files of the package. Nothing is read before the first request. */
export function guideFolder(): Readonly<Record<string, GatewayHandler>> {
  let guide: Promise<Guide> | undefined;
  const get: GatewayHandler = async (request) => {
    // Loading the parser of Markdown would take 20 ms of every start.
    guide ??= import("./render-markdown.ts").then(({ renderMarkdown }) => new Guide(renderMarkdown));
    return (await guide).respond(request);
  };
  const methods = new Map([["GET", get]]);
  return { [GUIDE_PATH]: (request) => dispatchMethod(methods, request) };
}

type PageParts = {
  readonly current?: GuidePage;
  readonly query?: string;
  readonly after?: Html;
};

class Guide {
  readonly #pages = readGuidePages();
  readonly #bySlug = new Map(this.#pages.map((page) => [page.slug, page]));
  readonly #slugByFile = new Map(this.#pages.map(({ file, slug }) => [file, slug]));
  readonly #rendered = new Map<string, RenderedMarkdown>();
  readonly #contents = new Map<string, TaggedContent>();
  readonly #render: RenderPage = makeRenderPage({
    formTargets: [],
    style: readFileSync(join(import.meta.dirname, "guide.css"), "utf8"),
    loadsFiles: true,
  });
  readonly #renderMarkdown: typeof renderMarkdown;
  #search: ReturnType<typeof makeSearch> | undefined;

  constructor(render: typeof renderMarkdown) {
    this.#renderMarkdown = render;
  }

  async respond(request: GatewayRequest): Promise<GatewayResponse> {
    const name = request.path.slice(GUIDE_PATH.length).replace(/^\/|\/$/g, "");
    if (name === "search") return this.#searchResponse(new URLSearchParams(request.rawQuery).get("q") ?? "");
    let content = this.#contents.get(name);
    if (content === undefined) {
      const { body, headers } = await this.#makeResponse(name);
      // No page of the guide has a header with several values.
      content = tagContent(body!, { ...(headers as Record<string, string>), "Cache-Control": "public, no-cache" });
      this.#contents.set(name, content);
    }
    return contentResponse(content, request.headers["if-none-match"]);
  }

  async #makeResponse(name: string): Promise<GatewayResponse> {
    const page = this.#bySlug.get(name);
    if (page) return this.#pageResponse(page);
    if (name === "") return this.#indexResponse();
    const folder = SCRIPTS.get(name);
    if (folder !== undefined) {
      const body = await readFile(join(import.meta.dirname, folder, name));
      return { status: 200, headers: { "Content-Type": "text/javascript; charset=utf-8" }, body };
    }
    const { name: picture, extension } = PICTURE.exec(name)?.groups ?? {};
    if (picture === undefined) throw notFound();
    const file = join(DOCUMENT_ROOT, PICTURE_FOLDER, `${picture}.${extension}`);
    const body = await readFile(file).catch(() => {
      throw notFound();
    });
    return { status: 200, headers: { "Content-Type": PICTURE_TYPES[extension!]! }, body };
  }

  #pageResponse(page: GuidePage): GatewayResponse {
    const { title, content, sections } = this.#read(page);
    const outline = outlineOf(sections);
    if (outline === null) return this.#toResponse(title, content, { current: page });
    const folded = html`<details class="contents"><summary>On this page</summary>
${outline}</details>`;
    const beside = html`<nav class="outline" aria-label="On this page"><p>On this page</p>
${outline}</nav>`;
    return this.#toResponse(title, html`${folded}${content}`, { current: page, after: beside });
  }

  #indexResponse(): GatewayResponse {
    const content = html`<p>The documentation of this release, served by the service itself.</p>
${groupsOf(this.#pages).map(
  ([group, pages]) => html`<h2>${group}</h2>
<ul class="cards">
${pages.map(({ slug, title, about }) => html`<li><a href="${GUIDE_PATH}/${slug}">${title}<span>${about.replaceAll("`", "")}</span></a></li>`)}
</ul>`,
)}`;
    return this.#toResponse("Guide", content);
  }

  #searchResponse(query: string): GatewayResponse {
    this.#search ??= makeSearch(
      this.#pages.flatMap((page) => this.#read(page).sections.map((section) => ({ page, section }))),
    );
    const results = this.#search(query);
    const content = html`<div id="results">${query.trim() === "" ? NO_QUERY : resultList(results)}</div>`;
    const { headers, ...response } = this.#toResponse("Search", content, { query });
    return { ...response, headers: { ...headers, "Cache-Control": "no-cache" } };
  }

  #toResponse(title: string, content: Html, { current, query = "", after }: PageParts = {}) {
    return this.#render({
      title,
      content,
      isWide: true,
      before: searchForm(query),
      after: html`${after}${pageList(this.#pages, current)}${[...SCRIPTS.keys()].map((name) => html`<script src="${GUIDE_PATH}/${name}"></script>`)}`,
    });
  }

  #read(page: GuidePage): RenderedMarkdown {
    let rendered = this.#rendered.get(page.slug);
    if (rendered === undefined) {
      const source = readFileSync(join(DOCUMENT_ROOT, page.file), "utf8");
      rendered = this.#renderMarkdown(source, (target) => this.#resolveLink(page, target));
      this.#rendered.set(page.slug, rendered);
    }
    return rendered;
  }

  #resolveLink(page: GuidePage, target: string): string | null {
    if (EXTERNAL.test(target)) return target.replace(EXAMPLE_ORIGIN, "");
    if (target.startsWith("#")) return target;
    const [path, anchor] = target.split("#") as [string, string?];
    const file = normalize(join(dirname(page.file), path));
    if (file.startsWith(PICTURE_FOLDER)) return `${GUIDE_PATH}/pictures/${file.slice(PICTURE_FOLDER.length)}`;
    if (file === PAGE_INDEX) return GUIDE_PATH;
    const slug = this.#slugByFile.get(file) ?? this.#slugByFile.get(join(file, "README.md"));
    if (slug === undefined) return null;
    return `${GUIDE_PATH}/${slug}${anchor === undefined ? "" : `#${anchor}`}`;
  }
}

function searchForm(query: string): Html {
  return html`<header class="guide">
<a class="home" href="${GUIDE_PATH}">${MARK} Guide</a>
<form role="search" action="${SEARCH_PATH}">
<label for="q">Search the guide</label>
<input id="q" name="q" type="search" value="${query}" maxlength="${MAX_QUERY_LENGTH}" placeholder="Search the guide" autocomplete="off">
<button>Search</button>
</form>
<a class="to-pages" href="#pages">All pages</a>
</header>`;
}

function pageList(pages: readonly GuidePage[], current: GuidePage | undefined): Html {
  return html`<nav id="pages" class="pages" aria-label="Pages">
${groupsOf(pages).map(
  ([group, members]) => html`<p>${group}</p>
<ul>
${members.map(({ slug, title }) => html`<li><a href="${GUIDE_PATH}/${slug}"${slug === current?.slug ? html` aria-current="page"` : null}>${title}</a></li>`)}
</ul>`,
)}
<p>This service</p>
<ul><li><a href="/">Start page</a></li><li><a href="/docs">API reference</a></li></ul>
</nav>`;
}

function groupsOf(pages: readonly GuidePage[]): [string, GuidePage[]][] {
  return [...Map.groupBy(pages, ({ group }) => group)];
}

/** The list of the page's sections, which is folded above the text, and beside it where the window is wide. */
function outlineOf(sections: readonly GuideSection[]): Html | null {
  const listed = sections.filter(({ level }) => level === 2);
  if (listed.length < MIN_LISTED_SECTIONS) return null;
  return html`<ul>
${listed.map(({ anchor, heading }) => html`<li><a href="#${anchor}">${heading}</a></li>`)}
</ul>`;
}

function resultList(results: readonly GuideSearchResult[]): Html {
  if (results.length === 0) return html`<p>No page contains all these words.</p>`;
  return html`<ol class="results">
${results.map(
  ({ page, section: { anchor, heading }, excerpt }) => html`<li>
<a href="${GUIDE_PATH}/${page.slug}${anchor === null ? "" : `#${anchor}`}">${page.title}${anchor === null ? "" : ` › ${heading}`}</a>
<p>${excerpt.map((part, index) => (index % 2 === 1 ? html`<mark>${part}</mark>` : html`${part}`))}</p>
</li>`,
)}
</ol>`;
}
