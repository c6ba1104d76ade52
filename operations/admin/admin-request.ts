import type { Accounts } from "#accounts";
import type { Authenticator, Caller, TokenKeys } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { ServedPostgres } from "#cluster";
import type { Config } from "#config";
import type { CsrfProtection, GatewayResponse, MatchedRequest, ResponseBody } from "#http";
import type { SharedActivity } from "#http/observability";
import type { SchemaChanges } from "#migrate";
import type { AsOwner, Database } from "#postgres/database";
import { unavailable } from "#runtime";
import type { Logger } from "#runtime/log";
import type { CompareInterfaces } from "../contract/contract.ts";
import type { OmittedFromGraphql } from "../doctor/collect-findings.ts";
import type { LogEvent } from "./event-log.ts";

/** The dependencies of the administrators' routes. */
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
  readonly compareInterfaces: CompareInterfaces;
  /** The activity of all processes of the service. */
  readonly everywhere: SharedActivity;
  /** Objects that are missing in the GraphQL schema. */
  readonly omittedFromGraphql: () => Promise<readonly OmittedFromGraphql[]>;
  readonly log: Logger;
};

/** A request of an administrator. */
export type AdminRequest = {
  readonly request: MatchedRequest;
  readonly caller: Caller;
  /** Null if the token names no user. */
  readonly userId: string | null;
  /** Records the event; called before each change, so that no change lacks a record. */
  readonly logEvent: LogEvent;
};

export type AdminRouteHandler = (
  request: AdminRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

export const NO_CONTENT: GatewayResponse = { status: 204, headers: {}, body: null };

/** Handlers by method and path below the prefix: `DELETE /sessions/{session}`. */
export type AdminRoutes = Readonly<Record<string, AdminRouteHandler>>;

/** Runs work that opens its own connections; responds with 503 if too much of it runs. */
type LimitedRunner = <Result>(work: () => Promise<Result>) => Promise<Result>;

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
