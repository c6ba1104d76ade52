import type pg from "pg";
import { makePgService } from "../../graphql/schemas/pg-service.ts";
import { makePreset } from "../../plugins/preset.ts";
import { type Database, openDatabase } from "../../postgres/database/database.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";

export type PresetOptions = {
  readonly template?: "content" | "empty";
  /** Statements that the owner of the database runs before anything is made of it. */
  readonly sql?: string;
  /** Loads a schema as the owner, before those statements. */
  readonly load?: (ownerUrl: string) => Promise<void>;
  readonly maxPageSize?: number;
  readonly aggregates?: boolean;
  readonly nodes?: boolean;
  readonly schemas?: readonly string[];
};

export type OpenedPreset = AsyncDisposable & {
  readonly database: TestDatabase;
  readonly owner: pg.Client;
  readonly engine: Database;
  readonly preset: GraphileConfig.Preset;
};

/** Opens a database of its own, and our preset for a schema of it. */
export async function openPreset({
  template = "content",
  sql = "",
  load,
  maxPageSize = 1000,
  aggregates = false,
  nodes = false,
  schemas = ["public"],
}: PresetOptions): Promise<OpenedPreset> {
  await using opened = new AsyncDisposableStack();
  const database = await cloneDatabase(template);
  opened.defer(() => database.drop());
  const owner = await connect(database.ownerUrl);
  opened.defer(() => owner.end());
  await load?.(database.ownerUrl);
  await owner.query(sql);
  const engine = openDatabase({ ...database, log: { info() {}, warn() {} } });
  opened.defer(() => engine.close());
  const pgService = makePgService({ database: engine, schemas: [...schemas], loginRole: "authenticator" });
  const kept = opened.move();
  return {
    database,
    owner,
    engine,
    preset: makePreset({ pgService, maxPageSize, aggregates, nodes }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
