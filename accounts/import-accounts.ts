import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { parseJsonExactly } from "#runtime/json";
import { CLIENT_INFO_SQL, clientInfoParameter, OPERATOR } from "./identity/client-info.ts";

type ImportedRow = Readonly<Record<string, unknown>>;

/** Rows of Supabase's `auth.users` and `auth.identities`. */
export type AccountRows = { readonly users: readonly ImportedRow[]; readonly identities: readonly ImportedRow[] };

type ImportOutcome = "imported" | "known" | "skipped" | "refused" | "no_provider";

export type ImportReport = {
  readonly users: Readonly<Partial<Record<ImportOutcome, number>>>;
  readonly identities: Readonly<Partial<Record<ImportOutcome, number>>>;
  /** Providers of identities that do not exist here. */
  readonly missingProviders: readonly string[];
  /** Addresses that this service does not accept, or that are taken. */
  readonly refused: readonly string[];
};

const IMPORT_ACCOUNT = `select auth.import_account($2, ${CLIENT_INFO_SQL}) as outcome`;
const IMPORT_IDENTITY = "select auth.import_identity($1) as outcome";

/** Imports all rows or, after a database error, none. Existing accounts stay as they are. */
export function importAccounts(asOwner: AsOwner, { users, identities }: AccountRows): Promise<ImportReport> {
  return inOwnerTransaction(asOwner, async (client) => {
    const importUser = (row: ImportedRow) =>
      outcomeOf(client, IMPORT_ACCOUNT, clientInfoParameter(OPERATOR), JSON.stringify(row));
    const importIdentity = (row: ImportedRow) => outcomeOf(client, IMPORT_IDENTITY, JSON.stringify(row));
    const userOutcomes = await inOrder(users, importUser);
    const identityOutcomes = await inOrder(identities, importIdentity);
    const missing = identities.filter((_, index) => identityOutcomes[index] === "no_provider");
    return {
      users: countOutcomes(userOutcomes),
      identities: countOutcomes(identityOutcomes),
      missingProviders: [...new Set(missing.map(({ provider }) => String(provider)))],
      refused: users.filter((_, index) => userOutcomes[index] === "refused").map(({ email }) => String(email)),
    };
  });
}

async function outcomeOf(
  client: pg.ClientBase,
  statement: string,
  ...values: readonly unknown[]
): Promise<ImportOutcome> {
  const { rows } = await client.query<{ outcome: ImportOutcome }>(statement, [...values]);
  return rows[0]!.outcome;
}

async function inOrder<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

function countOutcomes(outcomes: readonly ImportOutcome[]): Partial<Record<ImportOutcome, number>> {
  return Object.fromEntries([...Map.groupBy(outcomes, (outcome) => outcome)].map(([name, all]) => [name, all.length]));
}

/** A data block of pg_dump's plain format. */
const COPY_BLOCK = /^COPY "?auth"?\."?(users|identities)"? \(([^)]*)\) FROM stdin;\r?\n([\s\S]*?)^\\\.\r?$/gm;
const INSERT_STATEMENT = /^INSERT INTO "?auth"?\."?(users|identities)"? /im;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };
const JSON_COLUMNS: ReadonlySet<string> = new Set(["raw_user_meta_data", "raw_app_meta_data", "identity_data"]);

/** Reads a plain dump of the two tables, or JSON: `{"users": […], "identities": […]}`, or the list of users. */
export function readAccountRows(text: string): AccountRows {
  const rows = /^\s*[[{]/.test(text) ? readJsonRows(text) : readDump(text);
  if (rows.users.length > 0) return rows;
  const reason = INSERT_STATEMENT.test(text) ? "The file has INSERT statements." : "The file has no users.";
  throw new Error(
    `${reason} Only dumps with COPY and JSON can be imported. Write the file with: ` +
      "pg_dump --data-only --table auth.users --table auth.identities (without --inserts), or " +
      "supabase db dump --data-only --use-copy --schema auth, " +
      'or as JSON: {"users": […], "identities": […]}.',
  );
}

function readJsonRows(text: string): AccountRows {
  const value = parseJson(text);
  const { users, identities = [] } = Array.isArray(value) ? { users: value } : (value as Partial<AccountRows>);
  if (isRowList(users) && isRowList(identities)) return { users, identities };
  throw new Error('The JSON is no list of users, and no object with the lists "users" and "identities".');
}

function parseJson(text: string): unknown {
  try {
    return parseJsonExactly(text);
  } catch (error) {
    throw new Error(`The file is no valid JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function isRowList(value: unknown): value is ImportedRow[] {
  return Array.isArray(value) && value.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
}

function readDump(text: string): AccountRows {
  const rows = { users: [] as ImportedRow[], identities: [] as ImportedRow[] };
  for (const [, table, columnList, data] of text.matchAll(COPY_BLOCK)) {
    const columns = columnList!.split(",").map((column) => column.trim().replace(/^"|"$/g, ""));
    const lines = data!.split(/\r?\n/).filter((line) => line !== "");
    rows[table as keyof typeof rows].push(...lines.map((line) => readCopyLine(columns, line)));
  }
  return rows;
}

function readCopyLine(columns: readonly string[], line: string): ImportedRow {
  const fields = line.split("\t").map((field) => (field === "\\N" ? null : unescapeCopy(field)));
  return Object.fromEntries(
    columns.map((column, index) => {
      const field = fields[index] ?? null;
      return [column, field !== null && JSON_COLUMNS.has(column) ? parseJsonExactly(field) : field];
    }),
  );
}

function unescapeCopy(field: string): string {
  return field.replace(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character);
}
