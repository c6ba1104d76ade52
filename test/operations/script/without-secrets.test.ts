import { expect, test } from "vitest";
import { withoutSecrets } from "../../../operations/script/without-secrets.ts";

test("statements without secrets are kept", () => {
  expect(withoutSecrets("select 'a'; -- note\nselect $$b$$")).toBe("select 'a';\nselect $$b$$");
});

test.each([
  ["alter role bob password 'hunter2'", "alter role bob password …"],
  ["create role bob login password E'hunter2'", "create role bob login password …"],
  ["select set_config('app.settings.jwt_secret', 'hunter2', false)", "select set_config(…"],
  ["select crypt($$hunter2$$, gen_salt('bf'))", "select crypt(…"],
  ["select dblink('postgres://bob:hunter2@host/db')", "select dblink(…"],
  ["select 1; alter user bob password\n $secret$hunter2$secret$", "select 1;\nalter user bob password\n …"],
])("of a statement that seems to contain a secret, the literals are left out: %s", (sql, logged) => {
  expect(withoutSecrets(sql)).toBe(logged);
});
