import type pg from "pg";
import { type MigrateSettings, withScratchDatabase } from "#migrate";
import { withClient } from "#postgres/client";
import { anonymizeRows } from "./anonymized-rows.ts";
import type { ArchiveLine } from "./content/archive-format.ts";
import type { ContentTable } from "./content/content-tables.ts";
import { restoreLines } from "./restore-archive.ts";
import { prepareSample, type SampleOptions, sampleRows } from "./row-sample.ts";
import { archiveLines, type SelectContent } from "./write-archive.ts";

/** The tables whose rows define a database and its interface: applied migrations and versions of the interface. */
const DEFINING_TABLES =
  /^"graphile_migrate"\."(committed_transactions|current|histories|migrations)"$|^"(api|content_service)"\."versions"$/;

/** The objects that belong to a database and are not copied from a template. */
const DATABASE_ATTRIBUTES = ["privileges of database", "settings of the database"];

/** Gives a database the privileges and settings of another one on the same server. */
export async function copyDatabaseAttributes(sourceUrl: string, targetUrl: string): Promise<void> {
  await withClient(sourceUrl, (source) =>
    withClient(targetUrl, async (target) => {
      await restoreLines(target, attributeLines(source));
    }),
  );
}

async function* attributeLines(source: pg.ClientBase): AsyncGenerator<ArchiveLine> {
  for await (const line of archiveLines(source, { selectRows: () => [] })) {
    if (typeof line === "object" && "statement" in line && DATABASE_ATTRIBUTES.includes(line.object)) yield line;
  }
}

type CopyOptions = {
  readonly withRows?: boolean;
  /** The rows to copy; null or absent for all. */
  readonly sample?: SampleOptions | null;
  /** True if values are replaced according to the comments of columns. */
  readonly isAnonymized?: boolean;
};

/**
 * Creates the objects of a database in an empty one on the same server, with or without rows. Blocks nobody who reads or
 * writes rows. Returns the objects that the login was not permitted to create.
 */
export async function copySchema(
  sourceUrl: string,
  targetUrl: string,
  { withRows = false, sample = null, isAnonymized = false }: CopyOptions = {},
): Promise<readonly string[]> {
  return withClient(sourceUrl, (source) =>
    withClient(targetUrl, async (target) => {
      if (sample) await prepareSample(source);
      const selectRows = sample ? sampleSelection(sample) : withRows ? undefined : selectDefiningRows;
      return restoreLines(
        target,
        archiveLines(source, { selectRows: isAnonymized ? anonymized(selectRows) : selectRows }),
      );
    }),
  );
}

function isDefining({ table }: ContentTable): boolean {
  return DEFINING_TABLES.test(table);
}

const selectDefiningRows: SelectContent = (_, tables) => tables.filter(isDefining);

function sampleSelection(sample: SampleOptions): SelectContent {
  return (client, tables) => sampleRows(client, tables, { ...sample, isWhole: isDefining });
}

function anonymized(selectRows: SelectContent = (_, tables) => tables): SelectContent {
  return async (client, tables) => anonymizeRows(client, await selectRows(client, tables));
}

type CopiedDatabase = {
  /** The URL of the owner, without a pooler. */
  readonly directUrl: string;
  readonly migrate: MigrateSettings;
};

type SchemaCopyOptions = {
  readonly withRows: boolean;
  /** Receives the objects that the login was not permitted to create. */
  readonly warn: (warning: string) => void;
  readonly signal?: AbortSignal;
};

/** Runs the work on a copy of the database in the scratch database, whose settings it gets. */
export async function withSchemaCopy<T>(
  { directUrl, migrate }: CopiedDatabase,
  { withRows, warn, signal }: SchemaCopyOptions,
  work: (settings: MigrateSettings) => Promise<T>,
): Promise<T> {
  const { shadowUrl, rootUrl } = migrate;
  const copy = async () => {
    for (const warning of await copySchema(directUrl, shadowUrl, { withRows })) warn(warning);
    return work({ ...migrate, url: shadowUrl });
  };
  return withScratchDatabase(shadowUrl, rootUrl, copy, { signal });
}
