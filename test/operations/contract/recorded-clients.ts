import type { Service } from "../../../service/wiring/service.ts";
import { tokenFor } from "../../graphql.ts";

/** Rows that the recorded requests read and write. */
export const ROWS = `
  insert into shop.makers values (1, 'Ann', 'FR'), (2, 'Bob', 'DE');
  insert into shop.items (id, maker, title, sku, price, stock, note, owner)
    values (1, 1, 'Cup', 'c1', 5, 3, 'blue', 'authenticated'), (2, 2, 'Pot', 'p1', 20, 1, 'red', 'authenticated');
  select setval(pg_get_serial_sequence('shop.items', 'id'), 100);
  insert into shop.tags values (1, 'kitchen'), (2, 'kitchen')`;

type RecordedSurface = "tables" | "openapi" | "graphql";

export type RecordedRequest = {
  readonly surface: RecordedSurface;
  readonly role: "anon" | "authenticated" | "service_role";
  readonly path: string;
  readonly method?: string;
  readonly body?: object;
};

const ITEM = ["id", "maker", "title", "sku", "colour", "price", "stock", "note", "checked", "owner"];
const VALUES: Readonly<Record<string, unknown>> = {
  maker: 2,
  title: "A title of thirty characters..",
  sku: "n1",
  colour: "green",
  price: 9.25,
  stock: 7,
  note: null,
  checked: true,
};

/** A column of type `text` takes it, and one with a length may not. */
const LONG_NOTE = "long ".repeat(200);

/** The requests of clients that use everything: reads first, because writes are not undone. */
export const REQUESTS: readonly RecordedRequest[] = [
  ...(["anon", "authenticated", "service_role"] as const).flatMap((role) => [
    ...ITEM.map((column) => read("tables", role, `/rest/v1/items?select=${column}&order=${column}`)),
    read("tables", role, "/rest/v1/items?select=id,makers(name)&order=id"),
    read("tables", role, "/rest/v1/items?select=id,tags(tag),label&order=id"),
    read("tables", role, "/rest/v1/makers?select=id,name,country,items(id)&order=id"),
    read("tables", role, "/rest/v1/tags?select=tag,item,items(id)&order=item"),
    read("tables", role, "/rest/v1/cheap?select=id,title,price"),
    read("tables", role, "/rest/v1/rpc/find_items?part=C%25&most=5"),
  ]),
  read("openapi", "service_role", "/api/v1/items?sort=id"),
  ...Object.entries({ ...VALUES, note: "red" }).map(([column, value]) =>
    read("openapi", "service_role", `/api/v1/items?${column}=${encodeURIComponent(String(value))}`),
  ),
  read("openapi", "service_role", "/api/v1/items/1"),
  read("openapi", "service_role", "/api/v1/makers/1/items"),
  read("openapi", "service_role", "/api/v1/items/1/tags"),
  read("openapi", "service_role", "/api/v1/cheap"),
  query(
    `{ items { edges { node { ${ITEM.filter((each) => each !== "maker").join(" ")} label maker { id name country } tags { tag } } } } }`,
  ),
  query(
    "{ makers { edges { node { id name country items { id } } } } tags { edges { node { tag item { id } } } } cheaps { id title price } }",
  ),
  query('{ items(sku: "c1") { edges { node { id } } } }'),
  query('{ findItems(part: "C%", most: 5) { id } }'),
  query('mutation { addTag(input: { item: 1, tag: "new" }) }'),
  query('mutation { createItem(input: { title: "Jar", sku: "g1" }) { id title } }'),
  query('mutation { createItem(input: { title: "Tin", note: null, maker: null, stock: 1, colour: green }) { id } }'),
  query('mutation { updateMaker(id: "1", input: { name: "Eve" }) { id name } }'),
  query('mutation { createMaker(input: { id: "71", name: "New" }) { id } }'),
  write("tables", "POST", "/rest/v1/items", { title: "Jar" }),
  write("tables", "POST", "/rest/v1/items", { ...VALUES, sku: "n2", maker: null, owner: null }),
  write("tables", "POST", "/rest/v1/items?on_conflict=sku", { title: "Jug", sku: "c1" }),
  ...Object.entries(VALUES).map(([column, value]) =>
    write("tables", "PATCH", "/rest/v1/items?id=eq.1", { [column]: value }),
  ),
  write("tables", "PATCH", "/rest/v1/items?id=eq.2", { maker: null }),
  write("tables", "PATCH", "/rest/v1/items?id=eq.2", { note: LONG_NOTE }),
  write("tables", "PATCH", "/rest/v1/makers?id=eq.1", { name: "Eva", country: "IT" }),
  write("tables", "POST", "/rest/v1/makers", { id: 81, name: "New" }),
  write("tables", "POST", "/rest/v1/rpc/add_tag", { item: 2, tag: "rest" }),
  write("openapi", "POST", "/api/v1/items", { title: "Mug" }),
  write("openapi", "POST", "/api/v1/items", { ...VALUES, sku: "n3", maker: null }),
  ...Object.entries({ ...VALUES, sku: "n4" }).map(([column, value]) =>
    write("openapi", "PATCH", "/api/v1/items/2", { [column]: value }),
  ),
  write("openapi", "PATCH", "/api/v1/items/2", { maker: null }),
  write("openapi", "PATCH", "/api/v1/items/2", { note: LONG_NOTE }),
  write("openapi", "POST", "/api/v1/makers", { id: 91, name: "New" }),
  write("openapi", "PATCH", "/api/v1/makers/2", { name: "Jo" }),
  write("tables", "DELETE", "/rest/v1/tags?item=eq.1&tag=eq.kitchen"),
];

function read(surface: RecordedSurface, role: RecordedRequest["role"], path: string): RecordedRequest {
  return { surface, role, path };
}

function write(surface: RecordedSurface, method: string, path: string, body?: object): RecordedRequest {
  return { surface, role: "service_role", method, path, ...(body && { body }) };
}

function query(text: string): RecordedRequest {
  return { surface: "graphql", role: "service_role", method: "POST", path: "/graphql", body: { query: text } };
}

export type RecordedResponse = { readonly succeeded: boolean; readonly value: unknown };

export async function sendRequest(
  service: Service,
  { role, path, method = "GET", body }: RecordedRequest,
): Promise<RecordedResponse> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      ...(role !== "anon" && { Authorization: `Bearer ${tokenFor(1, { role })}` }),
      ...(body && { "Content-Type": "application/json" }),
      Prefer: path.includes("on_conflict")
        ? "resolution=merge-duplicates,return=representation"
        : "return=representation",
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const value = text === "" ? null : JSON.parse(text);
  return { succeeded: response.ok && !(path === "/graphql" && "errors" in value), value };
}

/** True if a client that worked before does not now. New fields break nobody. */
export function isBroken(before: RecordedResponse, after: RecordedResponse): boolean {
  if (!before.succeeded) return false;
  return !after.succeeded || !includesForm(before.value, after.value);
}

/** True if all rows and fields are there, with values of the same JSON type or null. */
function includesForm(before: unknown, after: unknown): boolean {
  if (before === null || after === null) return true;
  if (Array.isArray(before)) {
    return (
      Array.isArray(after) &&
      after.length >= before.length &&
      before.every((each, index) => includesForm(each, after[index]))
    );
  }
  if (typeof before !== "object") return typeof before === typeof after;
  return (
    typeof after === "object" &&
    !Array.isArray(after) &&
    Object.entries(before).every(
      ([name, member]) => name in after && includesForm(member, (after as Record<string, unknown>)[name]),
    )
  );
}
