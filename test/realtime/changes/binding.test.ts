import { afterAll, beforeAll, expect, test } from "vitest";
import { RawClient } from "../raw-client.ts";
import { type Ground, openGround } from "../service.ts";

let ground: Ground;
beforeAll(async () => {
  ground = await openGround();
});
afterAll(() => ground.close());

test.each([
  { what: "a table", grant: "grant select on public.news to anon", select: undefined },
  { what: "a column", grant: "grant select (id, title) on public.news to anon", select: ["title"] },
])("$what that was granted a moment ago can be asked for at once, and not before", async ({ grant, select }) => {
  const client = await new RawClient(ground.service.url).opened();
  const join = async (topic: string): Promise<string> => {
    await client.join(topic, { postgres_changes: [{ event: "*", schema: "public", table: "news", select }] });
    return (await client.until((message) => message.topic === topic && message.event === "system")).payload.status;
  };
  await ground.owner.query("revoke select on public.news from anon");
  await ground.owner.query("notify pgrst, 'reload schema'");
  for (let status = "ok", nth = 0; status === "ok"; nth++) status = await join(`realtime:before-${nth}`);
  await ground.owner.query(grant);
  expect(await join("realtime:after")).toBe("ok");
  await client.close();
});
