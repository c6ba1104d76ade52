import type { Config } from "../../engine/config/config.ts";
import type { ApiError } from "../../engine/errors.ts";
import type { Intent } from "../statement/intent.ts";
import type { Asked } from "./asked.ts";
import { explain } from "./explain.ts";
import { sentValues } from "./sent-values.ts";

/** What Postgres was asked when it refused. It is explained later: a transaction has yet to see what it was. */
export class Refused {
  readonly #anonRole: string;
  readonly #intents = new WeakMap<Error, Intent>();

  constructor({ anonRole }: Pick<Config, "anonRole">) {
    this.#anonRole = anonRole;
  }

  /** For what is thrown when it is asked. */
  noting(intent: Intent): (thrown: unknown) => never {
    return (thrown) => {
      if (thrown instanceof Error) this.#intents.set(thrown, intent);
      throw thrown;
    };
  }

  explain(thrown: unknown, asked: Asked): ApiError {
    const { caller, catalog, collections, target } = asked;
    const intent = thrown instanceof Error ? this.#intents.get(thrown) : undefined;
    return explain(thrown, {
      anonymous: caller.role === this.#anonRole,
      catalog,
      version: collections.version,
      collection: target.collection,
      sent: () => (intent ? sentValues(intent, asked) : []),
    });
  }
}
