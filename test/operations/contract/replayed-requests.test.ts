import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { openContracts, SHOP, verdicts } from "./changed-contracts.ts";
import { isBroken, REQUESTS, type RecordedResponse, ROWS, sendRequest } from "./recorded-clients.ts";

/** Statements by which a migration may change the shop. Not all of them are possible together. */
const STATEMENTS = [
  "alter table shop.items add column weight int",
  "alter table shop.makers add column weight int not null default 1",
  "alter table shop.makers add column code text; update shop.makers set code = 'x'; alter table shop.makers alter column code set not null",
  "alter table shop.items drop column note",
  "alter table shop.items drop column stock",
  "alter table shop.items rename column note to remark",
  "alter table shop.items rename column checked to verified",
  "alter table shop.items alter column note set not null",
  "alter table shop.items alter column maker set not null",
  "alter table shop.items alter column stock drop default",
  "alter table shop.items alter column stock drop not null",
  "alter table shop.items alter column stock type bigint",
  "alter table shop.items alter column stock type text",
  "alter table shop.items alter column note type varchar(500)",
  "alter table shop.items alter column note set default 'none'",
  "alter type shop.colour add value 'blue'",
  "alter type shop.colour rename value 'green' to 'lime'",
  "drop table shop.tags cascade",
  "alter table shop.tags rename to labels",
  "create table shop.orders (id int primary key); grant select on shop.orders to anon",
  "drop view shop.cheap",
  "alter table shop.items drop constraint items_maker_fkey",
  "alter table shop.items add column maker2 int references shop.makers",
  "alter table shop.items drop constraint items_sku",
  "alter table shop.items add constraint positive check (price >= 0)",
  "drop function shop.add_tag",
  "drop function shop.label",
  "drop function shop.find_items",
  "revoke select on shop.items from anon",
  "revoke select on shop.makers from anon, authenticated",
  "revoke update on shop.makers from authenticated, service_role, admin",
  "revoke insert on shop.items from service_role",
  "grant insert on shop.items to anon",
  "revoke execute on function shop.find_items from anon",
  "drop policy read_all on shop.items",
  "drop policy all_for_service on shop.items",
  "create policy narrow on shop.items as restrictive for select using (id > 1)",
  "create policy wide on shop.items for update to authenticated using (checked)",
  "alter table shop.items disable row level security",
  "alter table shop.makers enable row level security",
];

let recorded: readonly RecordedResponse[];
const contracts = useFixture(() => openContracts(`${SHOP}; ${ROWS}`));
beforeAll(async () => {
  recorded = await replay(contracts.name, "");
});

/** The responses in a copy of the database, after the SQL. */
async function replay(template: string, sql: string): Promise<RecordedResponse[]> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  const inRoot = (text: string) => withClient(urlOf("postgres", "postgres"), (client) => client.query(text));
  await inRoot(`create database ${name} template ${template}`);
  try {
    await withClient(urlOf("postgres", name), (client) => client.query(sql));
    const urls = { url: urlOf("authenticator", name), ownerUrl: urlOf("postgres", name) };
    const service = await serve(urls, { PGRST_DB_SCHEMAS: "shop", REST_REQUIRE_APIKEY: "false" });
    try {
      const responses: RecordedResponse[] = [];
      for (const request of REQUESTS) responses.push(await sendRequest(service, request));
      return responses;
    } finally {
      await service.stop();
    }
  } finally {
    await inRoot(`drop database ${name} with (force)`);
  }
}

describe("the verdict on a change", () => {
  test("is about requests that succeed before it", () => {
    const failed = REQUESTS.flatMap((request, index) =>
      recorded[index]!.succeeded ? [] : [{ request, response: recorded[index]!.value }],
    );
    expect(failed).toEqual([]);
  });

  test("is that of recorded clients that repeat their requests after it", async () => {
    const statements = fc.uniqueArray(fc.constantFrom(...STATEMENTS), { minLength: 1, maxLength: 2 });
    const property = fc.asyncProperty(statements, async (chosen) => {
      const sql = chosen.join(";\n");
      const changes = await contracts.compare(sql).catch(() => null);
      // The second statement changes an object that the first one has dropped.
      fc.pre(changes !== null);
      const after = await replay(contracts.name, sql);
      const broken = REQUESTS.filter((_, index) => isBroken(recorded[index]!, after[index]!));
      const verdict = verdicts(changes);
      for (const request of broken) {
        const levels = [verdict[request.surface], verdict.access];
        expect([request, levels]).toEqual([request, expect.arrayContaining(["breaking"])]);
      }
      // A program in TypeScript, or one with typed GraphQL, can break where no request does.
      if (verdict.tables === "breaking" || verdict.openapi === "breaking") expect(broken).not.toEqual([]);
    });
    await fc.assert(property, { numRuns: propertyRuns(20), endOnFailure: true });
  });
});
