import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { startCluster } from "#cluster/embedded";
import { withClient } from "#postgres/client";
import { compareRestored, type EmptyDatabase } from "./compare-restored.ts";
import { randomSchema, type SchemaNames } from "./random-schema.ts";
import { findPgDump, installPostgres } from "./versions.ts";

export type ComparedSchemas = {
  readonly version: string;
  readonly schemas: number;
  readonly hasPgDump: boolean;
  /** The first schema that differs, reduced as far as possible; null if none does. */
  readonly difference: string | null;
};

/** Restores backups of this many random schemas on a version of Postgres. */
export async function compareSchemas(
  major: number,
  { schemas, seed, names }: { readonly schemas: number; readonly seed: number; readonly names: SchemaNames },
): Promise<ComparedSchemas> {
  await using opened = new AsyncDisposableStack();
  const { binaries, version } = opened.use(await installPostgres(major));
  const folder = opened.adopt(await mkdtemp(join(tmpdir(), "random-schemas-")), remove);
  await chmod(folder, 0o755);
  const settings = { fsync: "off", full_page_writes: "off" };
  const options = { dataDir: join(folder, "data"), port: null, binaries, settings, tell: () => {} };
  const cluster = opened.adopt(await startCluster(options), (started) => started.stop());
  const rootUrl = cluster.url("postgres", "postgres");
  const pgDump = findPgDump(major);
  const createDatabase = makeDatabases((name) => cluster.url("postgres", name));
  const comparison = { createDatabase, rootUrl, folder, pgDump };
  const property = fc.asyncProperty(randomSchema(names), (schema) => compareRestored(schema, comparison));
  const { failed, counterexample, errorInstance } = await fc.check(property, {
    numRuns: schemas,
    seed,
    endOnFailure: false,
  });
  const difference = failed ? `${errorInstance}\n${fc.stringify(counterexample)}` : null;
  return { version, schemas, hasPgDump: pgDump !== null, difference };
}

const remove = (folder: string) => rm(folder, { recursive: true, force: true });

function makeDatabases(urlOf: (name: string) => string): () => Promise<EmptyDatabase> {
  let created = 0;
  const maintain = (statement: string) => withClient(urlOf("postgres"), (client) => client.query(statement));
  return async () => {
    const name = `schemas_${++created}`;
    await maintain(`create database ${name} template template0`);
    return {
      name,
      ownerUrl: urlOf(name),
      drop: async () => {
        await maintain(`drop database ${name} with (force)`);
      },
    };
  };
}
