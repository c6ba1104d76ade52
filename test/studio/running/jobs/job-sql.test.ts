import { describe, expect, test } from "vitest";
import { parseExactly } from "../../../../studio/api/exact-json.ts";
import {
  deleteJob,
  enableJob,
  formOf,
  NEW_SCHEDULE,
  NEW_WEBHOOK,
  replayWebhook,
  runSchedule,
  saveJob,
} from "../../../../studio/running/jobs/job-sql.ts";

describe("the SQL of a form", () => {
  test("names only what was filled in, and quotes it", () => {
    const form = { ...NEW_WEBHOOK, name: "o'hara", table_name: "public.orders", url: "https://x.example" };
    expect(saveJob("webhook", form, null)).toBe(
      `insert into api.webhooks ("name", "table_name", "events", "url", "role")\n` +
        `values ('o''hara', 'public.orders', '{INSERT,UPDATE,DELETE}', 'https://x.example', 'service_role')\nreturning secret;`,
    );
  });

  test("changes the row of the former name, and takes back what was emptied", () => {
    const form = { ...NEW_SCHEDULE, name: "new", cron: "@daily", function: "public.f", catch_up: true };
    const sql = saveJob("schedule", form, "old");
    expect(sql).toContain(`"name" = 'new'`);
    expect(sql).toContain(`"catch_up" = true`);
    expect(sql).toContain(`"time_limit" = default`);
    expect(sql).toMatch(/where name = 'old';$/);
  });

  test("enables, deletes, runs and replays by name", () => {
    expect(enableJob("webhook", "a'b", false)).toBe("update api.webhooks set is_enabled = false where name = 'a''b';");
    expect(deleteJob("schedule", "a")).toBe("delete from api.schedules where name = 'a';");
    expect(runSchedule("a")).toBe("select api.run_schedule('a');");
    expect(replayWebhook("a")).toBe("select api.replay_webhook_deliveries('a');");
  });
});

test("a form is filled in from the row", () => {
  const row = { name: "n", events: ["INSERT"], where: null, claims: { sub: "7" }, max_attempts: 5, other: 1 };
  const form = formOf(NEW_WEBHOOK, row);
  expect(form).toEqual({
    ...NEW_WEBHOOK,
    ...{ name: "n", events: ["INSERT"], role: "", claims: '{"sub":"7"}', max_attempts: "5" },
  });
});

test("numbers of a form have all digits of its row", () => {
  const row = parseExactly('{"name": "n", "arguments": {"id": 9007199254740993, "rate": 1.10}}') as object;
  expect(formOf(NEW_SCHEDULE, { ...row }).arguments).toBe('{"id":9007199254740993,"rate":1.10}');
});
