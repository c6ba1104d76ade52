import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withClient } from "../with-client.ts";
import { applyCommitted } from "./apply-committed.ts";
import { committedMigrations, type Migration, shownFile, writeMigration } from "./committed.ts";
import { type CurrentFile, currentFiles } from "./current.ts";
import type { History, MigrateSettings } from "./histories.ts";
import { makeSchemas, writeSchemas } from "./schema-files.ts";

type Written = Pick<Migration, "file" | "hash">;

const NO_TRANSACTION = "--! no-transaction";
const LONGEST_NAME = 60;

/**
 * Turns the files of `current/` into the next migrations of the history: one, or several where files run without a transaction,
 * each of which is one by itself. Nothing is left of it when they cannot be applied to an empty database and to this one.
 */
export async function commitCurrent(history: History, message: string, settings: Settings): Promise<string[]> {
  if (/\p{Cc}/u.test(message) || message.length > 200)
    throw new Error("The message is one line of at most 200 characters.");
  const files = await currentFiles(history);
  if (files.length === 0) throw new Error(`${shownFile(join(history.folder, "current"))} has nothing to commit.`);
  const written = await writeMigrations(history, message, files);
  const changed = written.map(({ file }) => shownFile(file));
  try {
    const schemas = await makeSchemas(settings, settings.histories);
    await applyCommitted(settings.url, settings.rootUrl, settings.histories);
    changed.push(...(await writeSchemas(schemas)));
  } catch (error) {
    await takeBack(history, written, settings.url);
    throw error;
  }
  // Last of all, so that the SQL is always in one of the two folders.
  await forgetCurrent(history, settings.url);
  for (const { file } of files) await rm(file);
  return changed;
}

type Settings = Required<MigrateSettings>;

/** Turns the last migration of the history into files of `current/` again. */
export async function uncommitLast(history: History, settings: Settings): Promise<string[]> {
  const current = join(history.folder, "current");
  const last = (await committedMigrations(history)).at(-1);
  if (!last) throw new Error(`History "${history.name}" has no migration to take back.`);
  if ((await currentFiles(history)).length > 0) {
    throw new Error(`${shownFile(current)} has a migration already. Commit it, or move it away first.`);
  }
  await mkdir(current, { recursive: true });
  const files: string[] = [];
  for (const { name, text } of currentOf(last)) {
    await writeFile(join(current, name), text);
    files.push(shownFile(join(current, name)));
  }
  await takeBack(history, [last], settings.url);
  return [...files, ...(await writeSchemas(await makeSchemas(settings, settings.histories)))];
}

async function writeMigrations(history: History, message: string, files: readonly CurrentFile[]): Promise<Written[]> {
  const committed = await committedMigrations(history);
  const folder = join(history.folder, "committed");
  await mkdir(folder, { recursive: true });
  let previous = committed.at(-1)?.hash ?? null;
  let number = Number.parseInt(committed.at(-1)?.name ?? "0", 10);
  const written: Written[] = [];
  for (const together of inMigrations(files)) {
    const { hash, text } = writeMigration({ previous, message, body: bodyOf(together) });
    const file = join(folder, `${String(++number).padStart(6, "0")}-${slugOf(message)}.sql`);
    await writeFile(file, text);
    written.push({ file, hash });
    previous = hash;
  }
  return written;
}

/** Each file without a transaction by itself, and those between two of them together. */
function inMigrations(files: readonly CurrentFile[]): CurrentFile[][] {
  const migrations: CurrentFile[][] = [];
  let together: CurrentFile[] | null = null;
  for (const file of files) {
    if (together && file.transaction) {
      together.push(file);
      continue;
    }
    const migration = [file];
    migrations.push(migration);
    together = file.transaction ? migration : null;
  }
  return migrations;
}

function bodyOf(files: readonly CurrentFile[]): string {
  const [first] = files;
  // graphile-migrate looks for it in the first line.
  if (!first!.transaction)
    return `${NO_TRANSACTION}\n${split(first!)}${first!.sql.slice(NO_TRANSACTION.length).trim()}`;
  if (files.length === 1) return first!.sql;
  return files.map((file) => `${split(file)}${file.sql}\n`).join("\n");
}

/** graphile-migrate's mark of where a file of `current/` begins. */
function split({ name }: CurrentFile): string {
  return `--! split: ${name}\n`;
}

function currentOf({ name, body }: Migration): { readonly name: string; readonly text: string }[] {
  const included = /^--! Included (\S+)\n[\s\S]*?^--! EndIncluded \1$/gm;
  const text = body.replace(included, (_, included: string) => `--! include ${included}`).trim();
  const isWithout = text.startsWith(NO_TRANSACTION);
  const [before = "", ...parts] = text.split(/^--! split: (\S+)\n/m);
  if (parts.length === 0)
    return [{ name: `0010-${name.replace(/^\d+-?/, "") || "migration.sql"}`, text: `${before}\n` }];
  return Array.from({ length: parts.length / 2 }, (_, index) => ({
    name: parts[2 * index]!,
    text: `${isWithout ? `${NO_TRANSACTION}\n` : ""}${parts[2 * index + 1]!.trim()}\n`,
  }));
}

async function takeBack({ name }: History, migrations: readonly Written[], url: string): Promise<void> {
  for (const { file } of migrations) await rm(file, { force: true });
  await withClient(url, (client) =>
    client.query("delete from graphile_migrate.histories where history = $1 and hash = any($2)", [
      name,
      migrations.map(({ hash }) => hash),
    ]),
  );
}

/** What `npm run dev` remembers of the files. */
async function forgetCurrent({ name }: History, url: string): Promise<void> {
  await withClient(url, (client) =>
    client.query("delete from graphile_migrate.current where filename like $1", [`${name}/%`]),
  );
}

function slugOf(message: string): string {
  const slug = message
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .slice(0, LONGEST_NAME);
  return slug.replace(/^-+|-+$/g, "") || "migration";
}
