import type { HashParameters } from "#accounts";
import type { PostgresUrls } from "#cluster";
import type { ReplaceStages } from "#graphql";
import type { ServiceOperations } from "#http/admin";
import type { SharedActivity } from "#http/observability";
import type { DrainMode, WorkersState } from "#http/serving";
import type { MigrationWatch } from "#migrate";
import type { ExtendServer } from "#rest-gateway/mcp";
import type { CoreOptions } from "./shared-services.ts";

/** The running service, in one process or several. */
export type RunningService = {
  /** The URL that it listens on. */
  readonly url: string;
  readonly postgres: PostgresUrls;
  /** The operations that the admin server calls. */
  readonly operations: ServiceOperations;
  /** Applies changed settings of the database and files (certificate, secret; with workers, the program too) without interrupting requests. */
  reload(): Promise<void>;
  /** Completes requests in flight, then closes everything. */
  stop(drainMode?: DrainMode): Promise<void>;
};

export type ServiceOptions = CoreOptions & {
  /** Undefined in a single process. */
  readonly workers?: () => WorkersState;
  /** Returns the watch of the files of `current/`; null if they are not watched. */
  readonly migrationWatch?: () => MigrationWatch | null;
  /** Undefined in a single process. */
  readonly everywhere?: SharedActivity;
  /** The time limit for which a start waits for the GraphQL schema. */
  readonly schemaWaitMs?: number;
  /** Called when the first request loads GraphQL. */
  readonly onGraphqlLoad?: () => void;
  /** Replaces how operations of GraphQL run, which tests compare. */
  readonly graphqlStages?: ReplaceStages;
  /** The cost of the hashes of passwords, which tests lower. */
  readonly passwordHash?: HashParameters;
  /** Adds the features that the protocol tests call to the MCP server. */
  readonly extendMcp?: ExtendServer;
};
