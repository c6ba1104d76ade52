import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type pg from "pg";
import { ConfigError } from "#config";
import { findClosestName } from "#runtime";
import { compileTemplate, type TemplateSource, type TemplateValues } from "./compile-template.ts";
import { DEFAULT_TEMPLATES, isMailName, MAIL_NAMES, type MailName } from "./default-templates.ts";
import type { Email } from "./mailer.ts";

/** The template of an e-mail that is in force, and where it is from. */
export type MailTemplate = TemplateSource & {
  readonly name: MailName;
  readonly origin: "file" | "saved" | "default";
  /** The file in MAIL_TEMPLATES_DIR. */
  readonly file: string | null;
  /** The administrator who saved it, and when. */
  readonly savedBy: string | null;
  readonly savedAt: Date | null;
};

/** The templates of e-mails: a file takes precedence over a saved template, which takes precedence over the default one. */
export type MailTemplates = {
  list(client: pg.ClientBase): Promise<readonly MailTemplate[]>;
  /** Returns the template in force. */
  find(client: pg.ClientBase, name: MailName): Promise<MailTemplate>;
  readonly write: WriteMail;
};

/** Writes the e-mail of that name. */
type WriteMail = (client: pg.ClientBase, name: MailName, to: string, values: TemplateValues) => Promise<Email>;

type SavedTemplate = TemplateSource & {
  readonly name: MailName;
  readonly saved_by: string | null;
  readonly saved_at: Date;
};

const READ_SAVED = "select name, subject, html, text, saved_by, saved_at from auth.email_templates";
const READ_ONE = `${READ_SAVED} where name operator(pg_catalog.=) $1`;

/** Reads the templates of MAIL_TEMPLATES_DIR. The others are read from the database for each e-mail, so that all processes send the same. */
export function readMailTemplates(folder: string | null): MailTemplates {
  const files = new Map(
    folder === null ? [] : findTemplateFiles(folder).map((found) => [found.name, readTemplateFile(found)]),
  );
  const inForce = (name: MailName, saved: SavedTemplate | undefined): MailTemplate => {
    const file = files.get(name);
    if (file) return file;
    if (saved) return toMailTemplate(saved);
    return { name, ...DEFAULT_TEMPLATES[name], origin: "default", file: null, savedBy: null, savedAt: null };
  };
  const find: MailTemplates["find"] = async (client, name) =>
    files.get(name) ?? inForce(name, (await client.query<SavedTemplate>(READ_ONE, [name])).rows[0]);
  return {
    find,
    async list(client) {
      const { rows } = await client.query<SavedTemplate>(READ_SAVED);
      return MAIL_NAMES.map((name) =>
        inForce(
          name,
          rows.find((saved) => saved.name === name),
        ),
      );
    },
    async write(client, name, to, values) {
      return { to, ...compileTemplate(await find(client, name))(values) };
    },
  };
}

function toMailTemplate({ saved_by: savedBy, saved_at: savedAt, ...saved }: SavedTemplate): MailTemplate {
  return { ...saved, origin: "saved", file: null, savedBy, savedAt };
}

type TemplateFile = { readonly name: MailName; readonly file: string };

function findTemplateFiles(folder: string): TemplateFile[] {
  const files = explainFault(folder, () => readdirSync(folder)).filter((file) => /\.(html|txt)$/.test(file));
  const found = files.map((file) => {
    const name = file.slice(0, -extname(file).length);
    if (!isMailName(name)) throw unknownFile(join(folder, file), file);
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

/** Reads a template, and fails if it cannot be used. A first line `Subject: …`, followed by an empty line, replaces the subject. */
function readTemplateFile({ name, file }: TemplateFile): MailTemplate {
  return explainFault(file, () => {
    const text = readFileSync(file, "utf8").replaceAll("\r\n", "\n");
    const [, subject = DEFAULT_TEMPLATES[name].subject, body = text] =
      /^Subject:[ \t]*([^\n]+)\n\n(.*)$/is.exec(text) ?? [];
    const source = extname(file) === ".txt" ? { html: null, text: body } : { html: body, text: null };
    compileTemplate({ subject, ...source });
    return { name, subject, ...source, origin: "file", file, savedBy: null, savedAt: null };
  });
}

function explainFault<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new ConfigError(`MAIL_TEMPLATES_DIR: ${path}: ${(cause as Error).message}.`, { cause });
  }
}
