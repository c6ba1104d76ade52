import type { Accounts } from "../../accounts/accounts.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Config } from "../../config/config.ts";
import type { Database } from "../../postgres/database/database.ts";
import type { AsOwner } from "../../postgres/database/owner-pool.ts";
import { unavailable } from "../../runtime/errors.ts";
import type { Authenticator } from "../../accounts/identity/authenticator.ts";
import type { Caller } from "../../accounts/identity/caller.ts";
import type { TokenKeys } from "../../accounts/identity/token-keys.ts";
import type { SchemaChanges } from "../../migrate/schema-changes.ts";
import type { SharedActivity } from "../../http/observability/process-activity.ts";
import type { Logger } from "../../runtime/log/log.ts";
import type { ServedPostgres } from "../../cluster/served-postgres.ts";
import type { CsrfProtection } from "../../http/csrf-protection.ts";
import type { OmittedFromGraphql } from "../doctor/collect-findings.ts";
import type { GatewayResponse, ResponseBody } from "../../http/response.ts";
import type { MatchedRequest } from "../../http/route-patterns.ts";
import type { LogEvent } from "./event-log.ts";

/** What the routes of administrators use. */
export type AdminServices = {
  readonly config: Config;
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly postgres: ServedPostgres;
  readonly catalog: () => Catalog;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
  readonly keys: TokenKeys;
  /** Null if the database has no accounts. */
  readonly accounts: Accounts | null;
  readonly schemaChanges: SchemaChanges;
  /** What all processes of the service know together. */
  readonly everywhere: SharedActivity;
  /** Objects that are missing in the GraphQL schema. */
  readonly omittedFromGraphql: () => readonly OmittedFromGraphql[];
  readonly log: Logger;
};

/** A request of an administrator. */
export type AdminRequest = {
  readonly request: MatchedRequest;
  readonly caller: Caller;
  /** Null at a playground, where nobody signs in. */
  readonly userId: string | null;
  /** To call before each change, so that none is made without a record. */
  readonly logEvent: LogEvent;
};

export type AdminRouteHandler = (
  request: AdminRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

/** Handlers by method and path below the prefix: `DELETE /sessions/{session}`. */
export type AdminRoutes = Readonly<Record<string, AdminRouteHandler>>;

/** Runs work that has connections of its own, as long as not too much of it runs; else 503. */
export type LimitedRunner = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function limitRunning(max: number, subject: string): LimitedRunner {
  let running = 0;
  return async (work) => {
    if (running >= max) throw unavailable(`Too many ${subject} are running; try again shortly.`);
    running++;
    try {
      return await work();
    } finally {
      running--;
    }
  };
}
