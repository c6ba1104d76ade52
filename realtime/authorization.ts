import { randomUUID } from "node:crypto";
import type { Caller } from "../engine/caller/caller.ts";
import { asLogin } from "../engine/database/as-login.ts";
import type { Database } from "../engine/database/database.ts";
import type { Context, Statement } from "../engine/database/statement.ts";
import { ApiError, toApiError } from "../engine/errors.ts";

export type Extension = "broadcast" | "presence";
/** What a caller may hear in a private channel. */
export type Hearing = Readonly<Record<Extension, boolean>>;

export type Authorization = {
  mayHear(caller: Caller, topic: string): Promise<Hearing>;
  maySay(caller: Caller, topic: string, extension: Extension): Promise<boolean>;
};

type AuthorizationOptions = {
  readonly database: Pick<Database, "run" | "transaction">;
  readonly contextOf: (caller: Caller) => Context;
};

const NO_SUCH_TABLE = ["42P01", "3F000"];
const FORBIDDEN = "42501";

const PLACE = `insert into realtime.messages (id, topic, extension, private)
  values ($1, $3, 'broadcast', true), ($2, $3, 'presence', true)`;
const SEE = "select extension from realtime.messages where id in ($1, $2)";
const SAY = "insert into realtime.messages (topic, extension, private) values ($1, $2, true)";

/** Thrown to have a transaction undone, with what was found out in it. */
class Found {
  readonly extensions: readonly (string | null)[];

  constructor(extensions: readonly (string | null)[]) {
    this.extensions = extensions;
  }
}

/** Has the policies on `realtime.messages` answer, by messages that are tried and undone. */
export function makeAuthorization({ database, contextOf }: AuthorizationOptions): Authorization {
  const contextIn = (caller: Caller, topic: string): Context => {
    const { role, settings } = contextOf(caller);
    const { sub } = caller.claims;
    return {
      role,
      settings: [
        // What is tried here is no change: a role that is to read only hears and speaks too.
        ...settings.filter(([name]) => name !== "transaction_read_only"),
        ["realtime.topic", topic],
        ["request.jwt.claim.sub", typeof sub === "string" ? sub : ""],
        ["request.jwt.claim.role", role],
      ],
    };
  };

  return {
    async mayHear(caller, topic) {
      try {
        await database.transaction(contextIn(caller, topic), async (ask) => {
          const ids = [randomUUID(), randomUUID()];
          await asLogin(ask)(statement(PLACE, ...ids, topic));
          const { rows } = await ask(statement(SEE, ...ids));
          throw new Found(rows.map(([extension]) => extension ?? null));
        });
      } catch (error) {
        if (error instanceof Found) {
          const { extensions } = error;
          return { broadcast: extensions.includes("broadcast"), presence: extensions.includes("presence") };
        }
        return refusedOrFailed(error, { broadcast: false, presence: false });
      }
      return { broadcast: false, presence: false };
    },

    async maySay(caller, topic, extension) {
      try {
        await database.run(contextIn(caller, topic), statement(SAY, topic, extension), { rollback: true });
        return true;
      } catch (error) {
        return refusedOrFailed(error, false);
      }
    },
  };
}

function statement(text: string, ...values: string[]): Statement {
  return { text, values };
}

function refusedOrFailed<Answer>(error: unknown, refused: Answer): Answer {
  const { code, status } = toApiError(error);
  if (code === FORBIDDEN) return refused;
  if (NO_SUCH_TABLE.includes(code)) {
    throw new ApiError(
      403,
      "PERMISSION_DENIED",
      "There are no private channels here: table realtime.messages is missing.",
    );
  }
  if (status >= 500) throw error;
  return refused;
}
