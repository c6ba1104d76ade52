import { escapeHtml } from "#runtime";

/** The variables of templates: `{{ .Email }}`. `Data` has the metadata of the user: `{{ .Data.first_name }}`. */
export const TEMPLATE_VARIABLES = [
  "ConfirmationURL",
  "Token",
  "TokenHash",
  "SiteURL",
  "Email",
  "NewEmail",
  "Data",
  "RedirectTo",
  "Inviter",
  "Project",
] as const;

export type TemplateValues = Readonly<
  Record<Exclude<(typeof TEMPLATE_VARIABLES)[number], "Data">, string> & { Data: Readonly<Record<string, unknown>> }
>;

/** An e-mail with variables. It has HTML, a text, or both. */
export type TemplateSource = {
  readonly subject: string;
  /** Null if the e-mail is sent as text alone. */
  readonly html: string | null;
  /** Null if the text is made from the HTML. */
  readonly text: string | null;
};

export type RenderedTemplate = { readonly subject: string; readonly text: string; readonly html?: string };

type RenderText = (values: TemplateValues) => string;

/** The content of an expression. A hyphen at its ends would remove space around it. */
const VARIABLE = /^-?\s*\.(\w+)((?:\.\w+)*)\s*-?$/;

/** Compiles a template. Throws an error that names the first expression that is not a variable. */
export function compileTemplate({ subject, html, text }: TemplateSource): (values: TemplateValues) => RenderedTemplate {
  const renderSubject = compileText(subject, unescaped);
  const renderText = compileText(text ?? toPlainText(html ?? ""), unescaped);
  const renderHtml = html === null ? null : compileText(html, escapeHtml);
  return (values) => {
    const rendered = {
      subject: renderSubject(values)
        .replace(/\p{Cc}+/gu, " ")
        .trim(),
      text: renderText(values),
    };
    return renderHtml ? { ...rendered, html: renderHtml(values) } : rendered;
  };
}

const unescaped = (value: string) => value;

const HIDDEN_ELEMENTS: ReadonlySet<string> = new Set(["head", "script", "style"]);
const LINE_ENDS = /^<(?:br\b|\/(?:p|div|h\d|li|tr)\b)/i;

/** Returns the template of the plain-text alternative: the text, with the addresses of links. */
function toPlainText(html: string): string {
  let text = "";
  let hidden: string | null = null;
  let address: string | null = null;
  for (const [token] of html.matchAll(/<[^<>]*>|[^<]+|</g)) {
    const [, slash = "", tag = ""] = /^<(\/?)([a-z][a-z\d]*)/i.exec(token) ?? [];
    const name = tag.toLowerCase();
    if (hidden !== null) {
      if (slash !== "" && name === hidden) hidden = null;
    } else if (!token.startsWith("<")) {
      text += token;
    } else if (slash === "" && HIDDEN_ELEMENTS.has(name)) {
      hidden = name;
    } else if (name === "a") {
      if (slash !== "" && address !== null) text += ` ${address}`;
      address = slash === "" ? (/\bhref\s*=\s*["']([^"']*)["']/i.exec(token)?.[1] ?? null) : null;
    } else if (LINE_ENDS.test(token)) {
      text += "\n";
    }
  }
  return text
    .replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity) => PLAIN_CHARACTERS[entity]!)
    .replace(/[ \t]+/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n");
}

const PLAIN_CHARACTERS: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": " ",
};

/**
 * Compiles the subset of Go's templates that inserts variables, so that templates written for Supabase can be used. Throws
 * an error that names the unknown expression.
 */
function compileText(source: string, escapeValue: (text: string) => string): RenderText {
  const [start = "", ...rest] = source.split("{{");
  const parts: (string | readonly string[])[] = [start];
  for (const piece of rest) {
    const end = piece.indexOf("}}");
    if (end < 0) throw new Error(`"{{" without "}}"`);
    parts.push(parseVariable(piece.slice(0, end)), piece.slice(end + 2));
  }
  return (values) =>
    parts.map((part) => (typeof part === "string" ? part : escapeValue(readValue(values, part)))).join("");
}

function parseVariable(content: string): readonly string[] {
  const [, name = "", path = ""] = VARIABLE.exec(content) ?? [];
  const isKnown = TEMPLATE_VARIABLES.some((known) => known === name) && (path === "" || name === "Data");
  if (!isKnown) {
    const names = TEMPLATE_VARIABLES.map((known) => `{{ .${known} }}`).join(", ");
    throw new Error(`{{${content}}} is not a variable; the variables are ${names}, and {{ .Data.name }}`);
  }
  return [name, ...path.split(".").slice(1)];
}

function readValue(values: TemplateValues, path: readonly string[]): string {
  let value: unknown = values;
  for (const name of path) {
    value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : "";
  }
  return isRecord(value) ? JSON.stringify(value) : String(value ?? "");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
