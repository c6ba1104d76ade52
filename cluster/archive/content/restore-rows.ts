import pg from "pg";
import type { ArchiveSequence, ArchiveTable } from "./archive-format.ts";
import type { ContentTable } from "./content-tables.ts";

const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 4_000_000;
/** The type with the columns of a backup in their order, for tables with another order. */
const ROW_TYPE = "pg_temp.archived_row";

type TableColumns = Pick<ContentTable, "table" | "columns" | "generated">;

/** Inserts the rows of a backup in batches. */
export class RowInserter {
  readonly #client: pg.ClientBase;
  readonly #existing: ReadonlyMap<string, ContentTable>;
  #table: TableColumns | null = null;
  #rowType = "";
  #batch: string[] = [];
  #characters = 0;

  constructor(client: pg.ClientBase, existing: ReadonlyMap<string, ContentTable>) {
    this.#client = client;
    this.#existing = existing;
  }

  /** Starts a table: the following rows belong to it. */
  async startTable({ table, columns }: ArchiveTable): Promise<void> {
    const existing = this.#existing.get(table);
    if (!existing || String([...existing.columns].sort()) !== String([...columns].sort())) {
      throw new Error(`The table ${table} has other columns than in the backup. Nothing was changed.`);
    }
    this.#table = { table, columns, generated: existing.generated };
    this.#rowType = table;
    if (String(existing.columns) === String(columns)) return;
    const list = columns.map((column) => pg.escapeIdentifier(column));
    await this.#client.query(
      `drop table if exists ${ROW_TYPE}; create temporary table archived_row on commit drop as select ${list} from ${table} with no data`,
    );
    this.#rowType = ROW_TYPE;
  }

  async add(row: string): Promise<void> {
    this.#batch.push(row);
    this.#characters += row.length;
    if (this.#batch.length >= BATCH_ROWS || this.#characters > BATCH_CHARACTERS) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#table && this.#batch.length > 0) {
      await insertRows(this.#client, this.#table, this.#batch, this.#rowType).catch((error: Error) => {
        throw new Error(
          `The rows of ${this.#table!.table} cannot be restored: ${error.message}. Nothing was changed.`,
          {
            cause: error,
          },
        );
      });
    }
    this.#batch = [];
    this.#characters = 0;
  }
}

/** Inserts rows given as composite literals. `offset 0` makes Postgres parse each literal once, not once per column. */
export async function insertRows(
  client: pg.ClientBase,
  { table, columns, generated }: TableColumns,
  rows: readonly string[],
  rowType: string = table,
): Promise<void> {
  const insertable = columns
    .filter((column) => !generated.includes(column))
    .map((column) => pg.escapeIdentifier(column));
  const target = insertable.length > 0 ? `${table} (${insertable}) overriding system value` : table;
  await client.query(
    `insert into ${target}
     select ${insertable.map((column) => `(r).${column}`)}
       from (select line::${rowType} as r from unnest($1::text[]) as line offset 0) as rows`,
    [rows],
  );
}

export async function setSequence(client: pg.ClientBase, { sequence, last, isCalled }: ArchiveSequence): Promise<void> {
  await client.query("select pg_catalog.setval($1::regclass, $2::bigint, $3)", [sequence, last, isCalled]);
}
