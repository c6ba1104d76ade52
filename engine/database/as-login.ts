import type { Row, Statement } from "./statement.ts";

/** Asks in a transaction that somebody else has begun. */
export type Ask = (statement: Statement) => Promise<{ readonly rows: readonly Row[] }>;

/** The caller's function may have changed the role; whatever it is by now, it is to be the same afterwards. */
const STEP_OUT: Statement = {
  text: `select pg_catalog.set_config('engine.role', pg_catalog.current_setting('role'), true),
    pg_catalog.set_config('role', 'none', true)`,
  values: [],
};
const STEP_BACK: Statement = {
  text: "select pg_catalog.set_config('role', pg_catalog.current_setting('engine.role'), true)",
  values: [],
};

/**
 * For what belongs into the caller's transaction and is not the caller's to do: each statement is executed by the login
 * itself. Deferred triggers run at commit and must find the caller again, so the role comes back at once.
 */
export function asLogin(ask: Ask): Ask {
  return async (statement) => {
    // None waits for the answer to another, but for that to the first one of a transaction. When one fails so do those
    // behind it, and the transaction with them.
    const [, answer] = await Promise.all([ask(STEP_OUT), ask(statement), ask(STEP_BACK)]);
    return answer;
  };
}
