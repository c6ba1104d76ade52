import { randomUUID } from "node:crypto";
import type { Database } from "../engine/database/database.ts";
import type { Statement, StatementContext } from "../engine/database/statement.ts";
import { asLogin } from "../engine/database/transaction.ts";
import type { Caller } from "../engine/identity/caller.ts";
import { HttpError, toHttpError } from "../http/http-error.ts";

export type ChannelExtension = "broadcast" | "presence";
/** What a caller may receive in a private channel. */
export type TopicReadAccess = Readonly<Record<ChannelExtension, boolean>>;

export type TopicAuthorization = {
  readAccess(caller: Caller, topic: string): Promise<TopicReadAccess>;
  mayWrite(caller: Caller, topic: string, extension: ChannelExtension): Promise<boolean>;
};

type TopicAuthorizationOptions = {
  readonly database: Pick<Database, "run" | "transaction">;
  readonly contextOf: (caller: Caller) => StatementContext;
};

const MISSING_TABLE_CODES = ["42P01", "3F000"];
const INSUFFICIENT_PRIVILEGE = "42501";

const INSERT_PROBES = `insert into realtime.messages (id, topic, extension, private)
  values ($1, $3, 'broadcast', true), ($2, $3, 'presence', true)`;
const SELECT_PROBES = "select extension from realtime.messages where id in ($1, $2)";
const INSERT_MESSAGE = "insert into realtime.messages (topic, extension, private) values ($1, $2, true)";

/** Thrown to roll back a transaction, with what was read in it. */
class RollbackWithExtensions {
  readonly extensions: readonly (string | null)[];

  constructor(extensions: readonly (string | null)[]) {
    this.extensions = extensions;
  }
}

/** Applies the policies on `realtime.messages` by writing and reading messages that are rolled back. */
export function makeTopicAuthorization({ database, contextOf }: TopicAuthorizationOptions): TopicAuthorization {
  const contextForTopic = (caller: Caller, topic: string): StatementContext => {
    const { role, settings } = contextOf(caller);
    const { sub } = caller.claims;
    return {
      role,
      settings: [
        // Nothing is changed here: a read-only role may receive and send too.
        ...settings.filter(([name]) => name !== "transaction_read_only"),
        ["realtime.topic", topic],
        ["request.jwt.claim.sub", typeof sub === "string" ? sub : ""],
        ["request.jwt.claim.role", role],
      ],
    };
  };

  return {
    async readAccess(caller, topic) {
      try {
        await database.transaction(contextForTopic(caller, topic), async (ask) => {
          const ids = [randomUUID(), randomUUID()];
          await asLogin(ask)(makeStatement(INSERT_PROBES, ...ids, topic));
          const { rows } = await ask(makeStatement(SELECT_PROBES, ...ids));
          throw new RollbackWithExtensions(rows.map(([extension]) => extension ?? null));
        });
      } catch (error) {
        if (error instanceof RollbackWithExtensions) {
          const { extensions } = error;
          return { broadcast: extensions.includes("broadcast"), presence: extensions.includes("presence") };
        }
        return resultIfDenied(error, { broadcast: false, presence: false });
      }
      return { broadcast: false, presence: false };
    },

    async mayWrite(caller, topic, extension) {
      try {
        await database.run(contextForTopic(caller, topic), makeStatement(INSERT_MESSAGE, topic, extension), {
          rollback: true,
        });
        return true;
      } catch (error) {
        return resultIfDenied(error, false);
      }
    },
  };
}

function makeStatement(text: string, ...values: string[]): Statement {
  return { text, values };
}

function resultIfDenied<Answer>(error: unknown, denied: Answer): Answer {
  const { code, status } = toHttpError(error);
  if (code === INSUFFICIENT_PRIVILEGE) return denied;
  if (MISSING_TABLE_CODES.includes(code)) {
    throw new HttpError(
      403,
      "PERMISSION_DENIED",
      "Private channels need the table realtime.messages, which does not exist.",
    );
  }
  if (status >= 500) throw error;
  return denied;
}
