import { expect, test } from "vitest";
import { useContent } from "./content.ts";
import { rolledBackAfter } from "./rolled-back.ts";

const content = useContent();

const withAccounts = rolledBackAfter(
  content,
  `insert into auth.users (user_id, username) values (1, 'alice'), (2, 'bob');
   insert into auth.user_roles (user_id, role) values (1, 'admin'), (2, 'authenticated');
   select auth.save_email_template('recovery', 'A new password', null, '{{ .Token }}', 1)`,
);

const save = (name: string, html: string, text: string, user: number | null = 1) =>
  `select auth.save_email_template('${name}', 'A subject', ${html}, ${text}, ${user})`;

test("an e-mail is saved, replaced by its name, and deleted", () =>
  withAccounts(async ({ rows, value }) => {
    await rows(save("recovery", "'<p>{{ .Token }}</p>'", "null", null));
    expect(await rows("select name, subject, html, text, saved_by from auth.email_templates")).toEqual([
      { name: "recovery", subject: "A subject", html: "<p>{{ .Token }}</p>", text: null, saved_by: null },
    ]);
    expect(await value("select auth.delete_email_template('recovery', 1)")).toBe(true);
    expect(await value("select auth.delete_email_template('recovery', 1)")).toBe(false);
  }));

test.each([
  ["is no administrator", 2],
  ["does not exist", 99],
])("a user who %s neither saves nor deletes one", (_, user) =>
  withAccounts(async ({ refusal }) => {
    expect(await refusal(save("recovery", "null", "'x'", user))).toBe("42501");
    expect(await refusal(`select auth.delete_email_template('recovery', ${user})`)).toBe("42501");
  }),
);

test("an administrator who has lost the role does not either", () =>
  withAccounts(async ({ rows, refusal }) => {
    await rows(save("recovery", "null", "'x'"));
    await rows("update auth.user_roles set role = 'authenticated' where user_id = 1");
    expect(await refusal(save("recovery", "null", "'x'"))).toBe("42501");
  }));

test.each([
  ["of another name", save("welcome", "null", "'x'")],
  ["without HTML and text", save("recovery", "null", "null")],
  ["with too long HTML", save("recovery", "repeat('x', 30001)", "null")],
  ["with a too long text", save("recovery", "null", "repeat('x', 30001)")],
  ["without a subject", "select auth.save_email_template('recovery', '', null, 'x', 1)"],
])("an e-mail %s is refused", (_, statement) =>
  withAccounts(async ({ refusal }) => {
    expect(await refusal(statement)).toBe("23514");
  }),
);
