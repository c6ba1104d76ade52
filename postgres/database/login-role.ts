import type { Statement } from "./statement.ts";

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
