import type { Statement } from "./statement.ts";
import { StatementShape } from "./statement-shape.ts";

/** Switches to the login until the role is restored or the transaction ends. Saves the role, as the caller's function may have changed it. */
export const BECOME_LOGIN: Statement = {
  text: `select pg_catalog.set_config('login.role', pg_catalog.current_setting('role'), true),
    pg_catalog.set_config('role', 'none', true)`,
  values: [],
};
export const BECOME_CALLER: Statement = {
  text: "select pg_catalog.set_config('role', pg_catalog.current_setting('login.role'), true)",
  values: [],
};

/** The statements that make the same changes by SET LOCAL, by the text that each replaces. */
export const ROLE_STATEMENTS: ReadonlyMap<string, StatementShape> = new Map([
  [
    BECOME_LOGIN.text,
    new StatementShape(`do $$ begin
      perform pg_catalog.set_config('login.role', pg_catalog.current_setting('role'), true);
      set local role none;
    end $$`),
  ],
  [
    BECOME_CALLER.text,
    new StatementShape(
      "do $$ begin execute pg_catalog.format('set local role %I', pg_catalog.current_setting('login.role')); end $$",
    ),
  ],
]);
