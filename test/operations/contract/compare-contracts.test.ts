import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { shareOf } from "../../property-runs.ts";
import { openContracts, SHOP, verdicts } from "./changed-contracts.ts";

const contracts = useFixture(openContracts);

/** A column of the view `cheap` can only be changed without it. */
function withoutCheap(sql: string): string {
  return `drop view shop.cheap; ${sql};
    create view shop.cheap as select id, title, price from shop.items where price < 10;
    grant select on shop.cheap to anon, authenticated; grant all on shop.cheap to service_role`;
}

function newAddTag(parameters: string, result: string): string {
  return `drop function shop.add_tag;
    create function shop.add_tag(${parameters}) returns ${result} language sql as 'select null::${result}';
    revoke execute on function shop.add_tag from public;
    grant execute on function shop.add_tag to anon, authenticated, service_role`;
}

/** Letters in the order GraphQL, OpenAPI, table interface, types, access: `B` breaking, `D` dangerous, `C` compatible, `-` unchanged. */
const CHANGES: readonly (readonly [sql: string, expected: string])[] = [
  ["comment on table shop.items is 'Items.'", "-----"],
  ["alter table shop.items add column weight int", "CCCC-"],
  ["alter table shop.items add column weight int not null default 1", "CCCC-"],
  ["alter table shop.makers add column weight int not null", "BBBB-"],
  ["alter table shop.items drop column note", "BBBB-"],
  ["alter table shop.items rename column note to remark", "BBBB-"],
  ["alter table shop.items alter column note set not null", "BBBB-"],
  ["alter table shop.items alter column maker set not null", "BBBB-"],
  ["alter table shop.items alter column stock drop default", "BBBB-"],
  ["alter table shop.items alter column title drop not null", "BDDB-"],
  ["alter table shop.items alter column stock type bigint", "BDD--"],
  ["alter table shop.items alter column stock type text", "BBBB-"],
  [withoutCheap("alter table shop.items alter column title type text"), "-CC--"],
  [withoutCheap("alter table shop.items alter column title type varchar(20)"), "-BB--"],
  [withoutCheap("alter table shop.items alter column price type numeric(8, 1)"), "--B--"],
  ["alter type shop.colour add value 'blue'", "DDDD-"],
  ["alter type shop.colour rename value 'green' to 'lime'", "BBBB-"],
  ["drop table shop.tags", "BBBB-"],
  ["alter table shop.tags rename to labels", "BBBB-"],
  ["create table shop.orders (id int primary key); grant select on shop.orders to anon", "CCCC-"],
  ["drop table shop.secrets", "---B-"],
  [
    `drop view shop.cheap;
   create view shop.cheap as select id, title from shop.items where price < 10;
   grant select on shop.cheap to anon, authenticated;
   grant all on shop.cheap to service_role`,
    "BBBB-",
  ],
  ["alter table shop.items drop constraint items_maker_fkey", "BBBB-"],
  ["alter table shop.items add column maker2 int references shop.makers", "CCBC-"],
  ["alter table shop.items add column maker2 int references shop.makers, drop constraint items_maker_fkey", "BBBB-"],
  ["alter table shop.items drop constraint items_sku", "B-B--"],
  ["alter table shop.items add constraint positive check (price >= 0)", "--D--"],
  ["alter table shop.items alter column note set default 'none'", "-----"],
  ["drop function shop.add_tag", "B-BB-"],
  [newAddTag("item int, tag text, why text", "text"), "B-BB-"],
  [newAddTag("item int, tag text, why text default ''", "text"), "C-CC-"],
  [newAddTag("item int, tag text", "int"), "B-BB-"],
  ["drop function shop.label", "B-BB-"],
  ["revoke select on shop.items from anon", "----B"],
  ["revoke select on shop.items from anon; grant select (id, title) on shop.items to anon", "----B"],
  ["revoke update on shop.makers from authenticated, service_role", "BBB-B"],
  ["grant insert on shop.items to anon", "----D"],
  ["grant select on shop.secrets to anon", "CCC-D"],
  ["revoke execute on function shop.find_items from anon", "----B"],
  ["drop policy read_all on shop.items", "B---B"],
  ["drop policy read_all on shop.items; create policy read_all on shop.items for select using (id > 0)", "B---B"],
  ["create policy wide on shop.items for update to authenticated using (checked)", "----D"],
  ["create policy narrow on shop.items as restrictive for select using (id > 0)", "B---B"],
  ["alter table shop.items disable row level security", "----D"],
  ["alter table shop.makers enable row level security", "----B"],
  [
    `alter table shop.makers enable row level security;
   create policy everybody on shop.makers using (true)`,
    "-----",
  ],
];

describe("compareContracts", () => {
  test.each(shareOf(CHANGES))("%s", async (sql, expected) => {
    const changes = await contracts.compare(sql);
    const letters = Object.values(verdicts(changes)).map((level) => level[0]!.toUpperCase());
    expect([letters.join(""), changes]).toEqual([expected, expect.anything()]);
  });

  test("does not depend on which of the roles comes last", async () => {
    const role = `zz_${randomUUID().replaceAll("-", "")}`;
    const more = await openContracts(`${SHOP}; create role ${role}; grant ${role} to authenticator`);
    try {
      const { openapi } = verdicts(await more.compare("alter table shop.makers enable row level security"));
      expect(openapi).toBe("-");
    } finally {
      await more[Symbol.asyncDispose]();
      await withClient(urlOf("postgres", "postgres"), (client) => client.query(`drop role ${role}`));
    }
  });

  test("names what breaks, and for whom", async () => {
    const changes = await contracts.compare("revoke select on shop.tags from anon; alter table shop.items drop note");
    const broken = changes.filter(({ level, surface }) => level === "breaking" && surface !== "graphql");
    expect(broken).toContainEqual({
      surface: "openapi",
      level: "breaking",
      object: "v1 items.row",
      message: "response.note: the field is no longer there",
    });
    expect(broken).toContainEqual({
      surface: "access",
      level: "breaking",
      object: "shop.tags select anon",
      message: "anon may no longer select.",
    });
  });
});
