import { tableLines } from "../schema-dump/definitions.ts";
import { grants, singleGrants } from "../schema-dump/grants.ts";
import { readStatements, SCHEMA_PARTS, type Statement } from "../schema-dump.ts";
import { withClient } from "../with-client.ts";
import { applyCommitted } from "./apply-committed.ts";
import { applyCurrent } from "./apply-current.ts";
import { type Difference, differencesOf, type Schema } from "./drift-statements.ts";
import type { MigrateSettings } from "./histories.ts";
import { whileLocked } from "./migrate.ts";
import { withScratchDatabase } from "./scratch-database.ts";

/** What the service makes beside the migrations: its queue, its record of migrations, and the trigger of `--watch-only`. */
const MADE_OTHERWISE =
  /(^schema | )"?(graphile_worker|graphile_migrate|content_service)\b|^event trigger content_service_/;
const PARTS = [...SCHEMA_PARTS.filter((part) => part !== grants), singleGrants];

/**
 * What a database has that its migrations do not make, and the other way round: it is compared with a scratch database that all
 * migrations, those of `current/` too, are applied to, and that is dropped afterwards.
 */
export async function findDrift(settings: Required<MigrateSettings>): Promise<Difference[]> {
  const { url, shadowUrl, rootUrl, histories } = settings;
  return whileLocked(url, () =>
    withScratchDatabase(shadowUrl, rootUrl, async () => {
      await applyCommitted(shadowUrl, rootUrl, histories);
      await applyCurrent({ ...settings, url: shadowUrl }, () => {});
      return differencesOf(await readSchema(url), await readSchema(shadowUrl));
    }),
  );
}

/** Without what the service makes beside the migrations. */
export async function readSchema(url: string): Promise<Schema> {
  return withClient(url, async (client) => {
    const isOurs = ({ object }: Statement) => !MADE_OTHERWISE.test(object);
    const statements = (await readStatements(client, PARTS)).filter(isOurs);
    return { statements, lines: (await readStatements(client, [tableLines])).filter(isOurs) };
  });
}
