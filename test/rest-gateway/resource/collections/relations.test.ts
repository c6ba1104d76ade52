import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { openResources, type Resources } from "../open-resources.ts";

/** Names of the greatest length that Postgres allows. */
const LONG_NAME = "ä".repeat(31);
const PLAIN_LONG_NAME = "n".repeat(63);

let ask: Resources["ask"];
const resources = useFixture(() =>
  openResources({
    template: "empty",
    settings: { PGRST_DB_SCHEMAS: "public,shop" },
    sql: `
      create schema shop;
      grant usage on schema public, shop to anon;
      create table rooms (building text, number int, label text unique, primary key (building, number));
      create table tables (id int primary key, room_number int, room_building text,
        foreign key (room_building, room_number) references rooms);
      create table seats (id int primary key, building text, number int, second_building text, second_number int,
        foreign key (number, building) references rooms (number, building),
        foreign key (second_building, second_number) references rooms);
      create table doors (label text references rooms (label) on update cascade, id int primary key);
      create table halls (part text, sort int, a int, b int, unique (a, b), unique (part, sort), primary key (part));
      create table ways (id int primary key, a int, b int, part text, sort int,
        foreign key (b, a) references halls (b, a), foreign key (part, sort) references halls (part, sort));
      create table members (id int primary key, name text);
      create table pages (id int primary key, parent int references pages, parent_id int references pages, parent_id_ int references members,
        self int references members, both_of int references members, constraint both_pages foreign key (both_of) references pages);
      create table steps (flow int, at int, previous_flow int, previous_at int, primary key (flow, at),
        foreign key (previous_flow, previous_at) references steps);
      create table shop.orders (id int primary key, member_id int references public.members, seller_id int references public.members);
      create table shop.members (id int primary key, person_id int references public.members);
      create table shop.lines (order_id int references shop.orders, position int, primary key (order_id, position));
      create table notes (id int primary key, order_id int, position int, foreign key (order_id, position) references shop.lines);

      create table ${LONG_NAME} (id int primary key, parent_id int references ${LONG_NAME});
      create table ${PLAIN_LONG_NAME} (id int primary key, a int references ${LONG_NAME}, b int references ${LONG_NAME});
      insert into ${LONG_NAME} values (1, null), (2, 1);
      insert into ${PLAIN_LONG_NAME} values (5, 1, 2);

      insert into rooms values ('A', 1, 'A1'), ('B, C', 2, 'B?2');
      insert into tables values (1, 2, 'B, C'), (2, 1, 'A'), (3, null, 'A');
      insert into seats values (1, 'A', 1, 'B, C', 2);
      insert into doors values ('B?2', 7);
      insert into halls values ('h', 5, 1, 2);
      insert into ways values (1, 1, 2, 'h', 5);
      insert into members values (1, 'Ann'), (2, 'Bob');
      insert into pages values (1, null, null, null, null, null), (2, 1, null, 1, 1, null), (3, 1, 2, 2, 2, 2);
      insert into steps values (1, 1, null, null), (1, 2, 1, 1);
      insert into shop.orders values (10, 1, 2);
      insert into shop.members values (5, 2);
      insert into shop.lines values (10, 1);
      insert into notes values (1, 10, 1);
      grant select, insert, update, delete on all tables in schema public, shop to anon`,
  }),
);
beforeAll(async () => {
  ask = resources.ask;
});

const linksOf = async (path: string): Promise<Record<string, string>> => {
  const { body } = await ask(`${path}?links=true`);
  const links = Object.entries<{ href: string }>(body._links).map(([name, { href }]) => [name, href]);
  return Object.fromEntries(links);
};

describe("a key of several columns", () => {
  test("links to the row that it references, whatever the order of its columns", async () => {
    expect(await linksOf("/api/v1/tables/1")).toMatchObject({ rooms: "/api/v1/rooms/B%2C%20C,2" });
    expect(await linksOf("/api/v1/tables/3")).not.toHaveProperty("rooms");
    expect(await linksOf("/api/v1/seats/1")).toMatchObject({
      rooms: "/api/v1/rooms/A,1",
      rooms_by_second_building_and_second_number: "/api/v1/rooms/B%2C%20C,2",
    });
    const { body } = await ask("/api/v1/seats?fields=id,rooms.label,rooms_by_second_building_and_second_number.label");
    expect(body.data).toEqual([
      { id: 1, rooms: { label: "A1" }, rooms_by_second_building_and_second_number: { label: "B?2" } },
    ]);
    expect((await ask("/api/v2/seats?fields=roomsBySecondBuildingAndSecondNumber.label")).body.data).toEqual([
      { roomsBySecondBuildingAndSecondNumber: { label: "B?2" } },
    ]);
    expect((await ask("/api/v1/seats?rooms=A")).status).toBe(400);
  });

  test("has a reverse link to the rows that reference it", async () => {
    const room = "/api/v1/rooms/B%2C%20C,2";
    expect(await linksOf(room)).toMatchObject({
      tables: `${room}/tables`,
      seats: `${room}/seats`,
      "seats-by-second": `${room}/seats-by-second`,
    });
    expect((await ask(`${room}/tables`)).body.data).toEqual([{ id: 1, room_number: 2, room_building: "B, C" }]);
    expect((await ask(`${room}/seats`)).body.data).toEqual([]);
    expect((await ask(`${room}/seats-by-second/1`)).body.id).toBe(1);
    expect((await ask("/api/v1/rooms/A,1?fields=tables.id,seats.id")).body).toEqual({
      tables: [{ id: 2 }],
      seats: [{ id: 1 }],
    });
    const made = await ask(`${room}/tables`, { method: "POST", body: { id: 4 } });
    expect([made.status, made.body]).toEqual([201, { id: 4, room_number: 2, room_building: "B, C" }]);
    expect((await ask(`${room}/tables/4`, { method: "DELETE" })).status).toBe(204);
  });

  test("that references its own table has a distinct name", async () => {
    const name = "steps_by_previous_flow_and_previous_at";
    expect(await linksOf("/api/v1/steps/1,2")).toMatchObject({
      [name]: "/api/v1/steps/1,1",
      steps: "/api/v1/steps/1,2/steps",
    });
    expect((await ask(`/api/v1/steps/1,2?fields=${name}.at,steps.at`)).body).toEqual({ [name]: { at: 1 }, steps: [] });
    expect((await ask(`/api/v1/steps/1,1?fields=${name}.at,steps.at`)).body).toEqual({
      [name]: null,
      steps: [{ at: 2 }],
    });
    expect((await ask("/api/v1/steps/1,1/steps")).body.data).toMatchObject([{ at: 2 }]);
  });
});

describe("a foreign key to other columns than those of the primary key", () => {
  test("links to the list of the one row with its values", async () => {
    const { label } = await linksOf("/api/v1/doors/7");
    expect(label).toBe("/api/v1/rooms?label=B%3F2");
    expect((await ask(label!)).body.data).toMatchObject([{ building: "B, C", number: 2 }]);
    const { halls } = await linksOf("/api/v1/ways/1");
    expect(halls).toBe("/api/v1/halls?b=2&a=1");
    expect((await ask(halls!)).body.data).toMatchObject([{ part: "h" }]);
  });

  test("has no link if a column cannot be a filter, because its name is a parameter of lists", async () => {
    expect(Object.keys(await linksOf("/api/v1/ways/1"))).not.toContain("halls_by_part_and_sort");
    expect((await ask("/api/v1/ways/1?fields=halls_by_part_and_sort.part")).body).toEqual({
      halls_by_part_and_sort: { part: "h" },
    });
  });
});

describe("foreign keys with the same name", () => {
  test("are all available: a column keeps its name, the others have their full names", async () => {
    expect(await linksOf("/api/v1/pages/3")).toMatchObject({
      parent: "/api/v1/pages/1",
      parent_id: "/api/v1/pages/2",
      parent_id_: "/api/v1/members/2",
      self: "/api/v1/pages/3",
      "self-2": "/api/v1/members/2",
      both_of: "/api/v1/members/2",
      both_of_2: "/api/v1/pages/2",
    });
    const { body } = await ask(
      "/api/v1/pages/3?fields=parent.id,parent_id.id,parent_id_.name,both_of.name,both_of_2.id",
    );
    expect(body).toEqual({
      parent: { id: 1 },
      parent_id: { id: 2 },
      parent_id_: { name: "Bob" },
      both_of: { name: "Bob" },
      both_of_2: { id: 2 },
    });
    expect(await linksOf("/api/v1/pages/1")).toMatchObject({
      pages: "/api/v1/pages/1/pages",
      "pages-by-parent": "/api/v1/pages/1/pages-by-parent",
      "pages-by-both-of": "/api/v1/pages/1/pages-by-both-of",
    });
    const idsAt = async (path: string) => (await ask(path)).body.data.map(({ id }: { id: number }) => id);
    expect(await idsAt("/api/v1/pages/1/pages")).toEqual([2, 3]);
    expect(await idsAt("/api/v1/pages/2/pages-by-parent")).toEqual([3]);
    expect(await idsAt("/api/v1/pages/2/pages-by-both-of")).toEqual([3]);
  });

  test("a column and the relation of the same name cannot both be selected", async () => {
    const { status, body } = await ask("/api/v1/pages?fields=parent,parent.id");
    expect([status, body.error.details[0].field]).toEqual([400, "fields"]);
    expect((await ask("/api/v1/pages/3?fields=parent_id,parent.id")).body).toEqual({ parent_id: 2, parent: { id: 1 } });
  });
});

describe("a foreign key to a table of another schema", () => {
  test("has links in both directions", async () => {
    expect(await linksOf("/api/v1/orders/10")).toMatchObject({
      member: "/api/v1/members/1",
      seller: "/api/v1/members/2",
      lines: "/api/v1/orders/10/lines",
    });
    expect((await ask("/api/v1/orders/10?fields=id,member.name,seller.name")).body).toEqual({
      id: 10,
      member: { name: "Ann" },
      seller: { name: "Bob" },
    });
    expect(await linksOf("/api/v1/members/2")).toMatchObject({
      orders: "/api/v1/members/2/orders",
      "orders-by-seller": "/api/v1/members/2/orders-by-seller",
      "shop-members": "/api/v1/members/2/shop-members",
    });
    expect((await ask("/api/v1/members/2/orders-by-seller")).body.data).toMatchObject([{ id: 10 }]);
    expect((await ask("/api/v1/members/2/shop-members")).body.data).toEqual([{ id: 5, person_id: 2 }]);
    expect((await ask("/api/v1/members/1?fields=orders.lines.position")).body).toEqual({
      orders: [{ lines: [{ position: 1 }] }],
    });
    expect(await linksOf("/api/v1/notes/1")).toMatchObject({ lines: "/api/v1/lines/10,1" });
    expect((await ask("/api/v1/members/1/orders/10/lines")).body.data).toEqual([{ order_id: 10, position: 1 }]);
    expect((await ask("/api/v1/members/2/orders/10/lines")).status).toBe(404);
    const made = await ask("/api/v1/members/2/orders", { method: "POST", body: { id: 11 } });
    expect([made.status, made.body]).toEqual([201, { id: 11, member_id: 2, seller_id: null }]);
  });

  test("is in the OpenAPI document", async () => {
    const { paths } = (await ask("/openapi.json")).body;
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(["/api/v1/members/{parentId}/orders-by-seller", "/api/v1/orders/{parentId}/lines"]),
    );
  });
});

test("tables whose names have 63 bytes, or letters beyond ASCII, are linked by encoded paths in both directions", async () => {
  const own = `/api/v1/${encodeURIComponent(LONG_NAME)}`;
  const other = `/api/v1/${PLAIN_LONG_NAME}`;
  const links = await linksOf(`${own}/1`);
  expect(links).toMatchObject({
    self: `${own}/1`,
    [LONG_NAME]: `${own}/1/${encodeURIComponent(LONG_NAME)}`,
    [PLAIN_LONG_NAME]: `${own}/1/${PLAIN_LONG_NAME}`,
    [`${PLAIN_LONG_NAME}-by-b`]: `${own}/1/${PLAIN_LONG_NAME}-by-b`,
  });
  const rowsAt = async (path: string) => (await ask(path)).body.data;
  expect(await rowsAt(links[LONG_NAME]!)).toEqual([{ id: 2, parent_id: 1 }]);
  expect(await rowsAt(links[PLAIN_LONG_NAME]!)).toEqual([{ id: 5, a: 1, b: 2 }]);
  expect(await rowsAt(`${own}/2/${PLAIN_LONG_NAME}-by-b`)).toEqual([{ id: 5, a: 1, b: 2 }]);
  expect(await linksOf(`${own}/2`)).toMatchObject({ parent: `${own}/1` });
  expect(await linksOf(`${other}/5`)).toMatchObject({ a: `${own}/1`, b: `${own}/2` });
  expect(await rowsAt(`${other}?fields=id,b.parent_id`)).toEqual([{ id: 5, b: { parent_id: 1 } }]);
});
