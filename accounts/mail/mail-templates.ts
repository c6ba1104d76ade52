import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { ConfigError } from "#config";
import { findClosestName } from "#runtime";
import type { Email } from "./mailer.ts";

/** The variables of templates: `{{ .Email }}`. `Data` has the metadata of the user: `{{ .Data.first_name }}`. */
const TEMPLATE_VARIABLES = [
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

type RenderText = (values: TemplateValues) => string;

const EXPRESSION = /\{\{-?(.*?)-?\}\}/gs;
const VARIABLE = /^\s*\.(\w+)((?:\.\w+)*)\s*$/;

type DefaultTemplate = { readonly subject: string; readonly text: string; readonly html?: string };

const EXPIRY = "The link and the code can be used once, and expire.";
const IGNORE = "If it was not you, ignore this e-mail.";

/** The default templates by their names at Supabase. */
const DEFAULTS = {
  confirmation: {
    subject: "Confirm your e-mail address",
    text: `To confirm {{ .Email }} for your account at {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
  },
  invite: {
    subject: "You have been invited",
    text: `You have been invited to {{ .SiteURL }}. To accept the invitation, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

The link and the code can be used once, and expire.
`,
  },
  invitation: {
    subject: "{{ .Inviter }} invites you to {{ .Project }}",
    text: `{{ .Inviter }} invites you to {{ .Project }}. To choose a password and sign in as {{ .Email }}, open this link within one day:

{{ .ConfirmationURL }}

The link can be used once. If you do not know who invites you, ignore this e-mail.
`,
    html: `<!doctype html>
<html lang="en">
<body style="font: 16px/1.5 system-ui, sans-serif; color: #1c2024; background: #ffffff; max-width: 34rem; margin: 2rem auto; padding: 0 1rem">
<h1 style="font-size: 20px">You are invited to {{ .Project }}</h1>
<p><strong>{{ .Inviter }}</strong> invites you to <strong>{{ .Project }}</strong>, where you sign in as {{ .Email }}.</p>
<p><a href="{{ .ConfirmationURL }}" style="display: inline-block; padding: 10px 16px; border-radius: 6px; background: #1f5fbf; color: #ffffff; text-decoration: none">Choose a password</a></p>
<p style="color: #5c646d">The link can be used once, within one day. If you do not know who invites you, ignore this e-mail.</p>
</body>
</html>
`,
  },
  magic_link: {
    subject: "Your sign-in link",
    text: `To sign in to {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
  },
  recovery: {
    subject: "Set a new password",
    text: `To set a new password for your account at {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
  },
  email_change: {
    subject: "Confirm the change of your e-mail address",
    text: `To change the e-mail address of your account at {{ .SiteURL }} to {{ .NewEmail }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
  },
  reauthentication: {
    subject: "Your confirmation code",
    text: `To confirm that it is you, enter this code: {{ .Token }}

It can be used once, and expires. If it was not you, somebody is signed in to your account: set a new password.
`,
  },
} satisfies Record<string, DefaultTemplate>;

export type MailName = keyof typeof DEFAULTS;

/** Writes the e-mail of that name. */
export type WriteMail = (name: MailName, to: string, values: TemplateValues) => Email;

type MailTemplate = { readonly subject: RenderText; readonly text: RenderText; readonly html: RenderText | null };

const MAIL_NAMES = Object.keys(DEFAULTS) as MailName[];

/** Reads the templates of MAIL_TEMPLATES_DIR; e-mails without a file there have the default text. */
export function readMailTemplates(folder: string | null): WriteMail {
  const templates: Record<string, MailTemplate> = {};
  for (const name of MAIL_NAMES) templates[name] = compileDefault(DEFAULTS[name]);
  for (const { name, file } of folder === null ? [] : findTemplateFiles(folder)) {
    templates[name] = explainFault(file, () => compileFile(file, DEFAULTS[name].subject));
  }
  return (name, to, values) => {
    const { subject, text, html } = templates[name]!;
    const head = {
      to,
      subject: subject(values)
        .replace(/\p{Cc}+/gu, " ")
        .trim(),
      text: text(values),
    };
    return html ? { ...head, html: html(values) } : head;
  };
}

type TemplateFile = { readonly name: MailName; readonly file: string };

function findTemplateFiles(folder: string): TemplateFile[] {
  const files = explainFault(folder, () => readdirSync(folder)).filter((file) => /\.(html|txt)$/.test(file));
  const found = files.map((file) => {
    const name = MAIL_NAMES.find((known) => known === file.slice(0, -extname(file).length));
    if (!name) throw unknownFile(join(folder, file), file);
    return { name, file: join(folder, file) };
  });
  const twice = found.find(({ name }, index) => found.findIndex((other) => other.name === name) !== index);
  if (twice)
    throw new ConfigError(`MAIL_TEMPLATES_DIR: ${twice.name} has two templates; keep the .html or the .txt file.`);
  return found;
}

function unknownFile(path: string, file: string): ConfigError {
  const closest = findClosestName(file.replace(/\.\w+$/, ""), MAIL_NAMES);
  const advice = closest ? `Did you mean ${closest}${extname(file)}?` : `The names are ${MAIL_NAMES.join(", ")}.`;
  return new ConfigError(`MAIL_TEMPLATES_DIR: ${path} is not the name of an e-mail. ${advice}`);
}

/** A first line `Subject: …`, followed by an empty line, replaces the subject. */
function compileFile(file: string, defaultSubject: string): MailTemplate {
  const source = readFileSync(file, "utf8").replaceAll("\r\n", "\n");
  const [, subject = defaultSubject, body = source] = /^Subject:[ \t]*([^\n]+)\n\n(.*)$/is.exec(source) ?? [];
  if (extname(file) === ".txt") return compilePlain({ subject, text: body });
  return {
    ...compilePlain({ subject, text: toPlainText(body) }),
    html: compileTemplate(body, escapeHtml),
  };
}

function compileDefault(template: DefaultTemplate): MailTemplate {
  const html = template.html === undefined ? null : compileTemplate(template.html, escapeHtml);
  return { ...compilePlain(template), html };
}

function compilePlain({ subject, text }: DefaultTemplate): MailTemplate {
  const unescaped = (value: string) => value;
  return { subject: compileTemplate(subject, unescaped), text: compileTemplate(text, unescaped), html: null };
}

function explainFault<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new ConfigError(`MAIL_TEMPLATES_DIR: ${path}: ${(cause as Error).message}.`, { cause });
  }
}

/** Returns the template of the plain-text alternative: the text, with the addresses of links. */
function toPlainText(html: string): string {
  return html
    .replace(/<(style|script|head)\b[^>]*>.*?<\/\1\s*>/gis, "")
    .replace(/<a\b[^>]*\bhref\s*=\s*["']([^"']*)["'][^>]*>(.*?)<\/a\s*>/gis, "$2 $1")
    .replace(/<br\b[^>]*>|<\/(p|div|h\d|li|tr)\s*>/gi, "\n")
    .replace(/<[^>]*>/g, "")
    .replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity) => PLAIN_CHARACTERS[entity]!)
    .replace(/[ \t]+/g, " ")
    .replace(/\s*\n\s*/g, "\n")
    .trim();
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
function compileTemplate(source: string, escapeValue: (text: string) => string): RenderText {
  const parts: (string | readonly string[])[] = [];
  let end = 0;
  for (const match of source.matchAll(EXPRESSION)) {
    parts.push(source.slice(end, match.index), parseVariable(match[0], match[1]!));
    end = match.index + match[0].length;
  }
  const rest = source.slice(end);
  if (rest.includes("{{")) throw new Error(`"{{" without "}}"`);
  parts.push(rest);
  return (values) =>
    parts.map((part) => (typeof part === "string" ? part : escapeValue(readValue(values, part)))).join("");
}

function parseVariable(expression: string, content: string): readonly string[] {
  const [, name = "", path = ""] = VARIABLE.exec(content) ?? [];
  const isKnown = TEMPLATE_VARIABLES.some((known) => known === name) && (path === "" || name === "Data");
  if (!isKnown) {
    const names = TEMPLATE_VARIABLES.map((known) => `{{ .${known} }}`).join(", ");
    throw new Error(`${expression} is not a variable; the variables are ${names}, and {{ .Data.name }}`);
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

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
