import pg from "pg";
import type { Config } from "../engine/config/config.ts";
import type { AsOwner } from "../engine/database/as-owner.ts";
import { ApiError } from "../engine/errors.ts";
import { reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { commandLine } from "./command-line.ts";

/** Undefined function, undefined table, invalid schema name. */
const NOT_MIGRATED: readonly (string | undefined)[] = ["42883", "42P01", "3F000"];
/** Insufficient privilege. */
const NOT_OWNER = "42501";
/** Codes of our own SQL, whose words are meant for people. */
const SPOKEN = /^[A-Z]{5}$/;

/** Does what only the database's owner may do; what is refused is told in words. */
export async function withOwner<T>(config: Config, work: (asOwner: AsOwner) => Promise<T>): Promise<T> {
  const postgres = await reachPostgres(config, (step) => console.error(step));
  try {
    return await withClient(postgres.ownerUrl, (client) => work((question) => question(client)));
  } catch (error) {
    throw inWords(error);
  } finally {
    await postgres.close();
  }
}

function inWords(error: unknown): unknown {
  if (error instanceof ApiError) return new Error([error.message, ...faultsOf(error)].join("\n  "), { cause: error });
  if (!(error instanceof pg.DatabaseError) || !error.code) return error;
  if (NOT_MIGRATED.includes(error.code)) {
    return new Error(`This database is not set up for signing in: run ${commandLine("migrate")}.`, { cause: error });
  }
  if (error.code === NOT_OWNER) {
    return new Error(`${error.message}: set OWNER_DATABASE_URL to the same database as its owner.`, { cause: error });
  }
  return SPOKEN.test(error.code) ? new Error(error.message, { cause: error }) : error;
}

function faultsOf({ details }: ApiError): string[] {
  const faults: readonly object[] = Array.isArray(details) ? details : [];
  return faults.flatMap((fault) => ("message" in fault ? [String(fault.message)] : []));
}
