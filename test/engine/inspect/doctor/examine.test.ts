import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCatalog } from "../../../../engine/catalog/load.ts";
import { readConfig } from "../../../../engine/config/config.ts";
import { examine } from "../../../../engine/inspect/doctor/examine.ts";
import { type Facts, readLogin, readStream } from "../../../../engine/inspect/doctor/facts.ts";
import { withClient } from "../../../../engine/with-client.ts";
import { cloneDatabase } from "../../../database.ts";

type Database = Awaited<ReturnType<typeof cloneDatabase>>;

const ILL = `
  create schema shop;
  grant usage on schema shop to anon, authenticated;
  create table shop.open (id int primary key);
  grant select on shop.open to anon;
  create table shop.silent (id int primary key);
  alter table shop.silent enable row level security;
  grant select (id) on shop.silent to authenticated;
  create table shop.unreached (id int primary key);
  create table shop.orders (id int primary key, "Buyer" text not null, parent int constraint orders_parent references shop.orders);
  alter table shop.orders enable row level security;
  create policy own on shop.orders using ("Buyer" = current_setting('request.jwt.claims', true));
  grant select on shop.orders to authenticated;
  create view shop.seen as select * from shop.orders;
  grant select on shop.seen to authenticated;
  create materialized view shop.copied as select * from shop.orders;
  grant select on shop.copied to public;
  create function shop.trusted() returns int language sql security definer as 'select 1';
  create function shop.hidden() returns int language sql security definer as 'select 1';
  revoke execute on function shop.hidden from public;
  create publication watched for table shop.orders;
`;

const WELL = `
  create schema shop;
  grant usage on schema shop to anon, authenticated;
  create table shop.orders (id int primary key, buyer text not null, parent int references shop.orders);
  create index on shop.orders (parent);
  create index on shop.orders (buyer);
  alter table shop.orders enable row level security;
  alter table shop.orders replica identity full;
  create policy own on shop.orders using (buyer = (select current_setting('request.jwt.claims', true)));
  grant select on shop.orders to authenticated;
  create view shop.seen with (security_invoker = true) as select * from shop.orders;
  grant select on shop.seen to authenticated;
  create publication watched for table shop.orders;
`;

let ill: Database;
let well: Database;
beforeAll(async () => {
  [ill, well] = await Promise.all([cloneDatabase("empty"), cloneDatabase("empty")]);
  await withClient(ill.ownerUrl, (client) => client.query(ILL));
  await withClient(well.ownerUrl, (client) => client.query(WELL));
});
afterAll(() => Promise.all([ill.drop(), well.drop()]));

async function examined({ url, ownerUrl }: Database, environment = {}, loginUrl = url) {
  const { config } = readConfig({ PGRST_DB_SCHEMAS: "shop", ...environment });
  const facts = await withClient(ownerUrl, async (owner): Promise<Facts> => {
    const options = { schemas: config.schemas, extraSearchPath: [], loginRole: "authenticator" };
    const { catalog } = await loadCatalog(owner, options);
    const login = await withClient(loginUrl, (client) => readLogin(client, { catalog }));
    return { catalog, config, clients: ["anon", "authenticated"], login, stream: await readStream(owner, "watched") };
  });
  return examine(facts);
}

const DEPLOYED = {
  DATABASE_URL: "postgresql://authenticator@localhost/app",
  JWT_SECRET: "a secret that is long enough to sign with",
};

describe("examine", () => {
  test("has nothing to say of a database that is well", async () => {
    expect(await examined(well)).toEqual([]);
  });

  test("finds what is open, what is slow and what is missing, the gravest first", async () => {
    const found = (await examined(ill)).map(({ kind, what }) => `${kind}: ${what}`);
    expect(found).toEqual([
      'danger: Policies cannot bind "shop"."copied", a materialized view: every row is open (anon: select; authenticated: select).',
      'danger: Every row of "shop"."open" is open: row-level security is off (anon: select).',
      'danger: The view "shop"."seen" reads past the policies of its tables (authenticated: select).',
      'danger: "shop"."trusted"() acts with the rights of postgres, and looks names up where its caller says.',
      'advice: Nobody sees a row of "shop"."silent": it has privileges (authenticated: select), and no policy.',
      'advice: "shop"."trusted"() acts with the rights of postgres, past the policies, and anon, authenticated may call it.',
      'advice: Subscribers are not shown the old rows of "shop"."orders".',
      'slow: The policy "own" on "shop"."orders" asks who the caller is once per row.',
      'slow: Embedding by orders_parent, and deleting what it points to, reads all of "shop"."orders".',
      'slow: A policy of "shop"."orders" looks for rows by "Buyer", which has no index.',
    ]);
  });

  test("says of the login and the settings of a deployment what is meant for development", async () => {
    const whats = (await examined(well, { ...DEPLOYED, RATE_LIMIT: "0" }, well.ownerUrl)).map(({ what }) => what);
    expect(whats).toEqual([
      'Requests log in as "postgres", a superuser: a mistake here is a mistake without bounds.',
      "The service serves DATABASE_URL and is not told that this is production: /users is open.",
      "Links in mails and redirects name the address that the service listens on.",
      "Nothing limits how often somebody asks.",
    ]);
    const production = { ...DEPLOYED, NODE_ENV: "production", PUBLIC_URL: "https://example.org" };
    expect(await examined(well, production)).toEqual([]);
  });

  test("a fix that is SQL mends what it was found for", async () => {
    const before = await examined(ill);
    const fixes = before.filter(({ fix }) => !fix.startsWith("--"));
    expect(fixes.length).toBeGreaterThan(6);
    await withClient(ill.ownerUrl, async (client) => {
      for (const { fix } of fixes) await client.query(fix);
    });
    const left = (await examined(ill)).map(({ what }) => what);
    const mended = fixes.map(({ what }) => what);
    expect(left.filter((what) => mended.includes(what))).toEqual([]);
  });
});
