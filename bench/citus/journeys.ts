import { ORDERS } from "./schema.ts";

type Call = { readonly method?: string; readonly path: string; readonly body?: unknown; readonly prefer?: string };

type JsonObject = { readonly [name: string]: JsonObject | undefined };

/**
 * A request of a tenant and its response. With `rows` the body must have that number of rows, and each of them must be of the tenant;
 * with `status` only the status is compared, because the request is refused on purpose.
 */
export type Journey = {
  readonly name: string;
  readonly call: (tenant: number) => Call;
  readonly rows?: number;
  readonly status?: number;
  readonly accept?: string;
  /** Finds the rows in a body that is no list of them. */
  readonly rowsIn?: (body: JsonObject) => unknown;
};

const REPRESENTATION = "return=representation";
const returning = { prefer: REPRESENTATION };
const get = (path: string) => () => ({ path });
const orders = (query: string) => get(`/rest/v1/orders?${query}`);

function graphql(query: string): () => Call {
  return () => ({ method: "POST", path: "/graphql", body: { query } });
}

/** They run in this order, each as all tenants. */
export const JOURNEYS: readonly Journey[] = [
  { name: "list", call: orders("order=id"), rows: ORDERS },
  { name: "own row by key", call: (tenant) => ({ path: `/rest/v1/orders?tenant_id=eq.${tenant}&id=eq.1` }), rows: 1 },
  { name: "another tenant's rows", call: (tenant) => ({ path: `/rest/v1/orders?tenant_id=neq.${tenant}` }), rows: 0 },
  { name: "filter and order", call: orders("total=gte.20&order=total.desc&limit=2"), rows: 2 },
  { name: "operators in, like, or", call: orders("id=in.(1,2)&note=like.order*&or=(id.eq.1,id.eq.2)"), rows: 2 },
  { name: "page with exact count", call: () => ({ path: "/rest/v1/orders?limit=2", prefer: "count=exact" }), rows: 2 },
  { name: "relation to many", call: orders("select=*,order_lines(*)"), rows: ORDERS },
  { name: "relation to one", call: get("/rest/v1/order_lines?select=*,orders(*)"), rows: 2 * ORDERS },
  {
    name: "relation to a reference table",
    call: get("/rest/v1/order_lines?select=*,products!inner(*)"),
    rows: 2 * ORDERS,
  },
  { name: "relation of two steps", call: get("/rest/v1/tenants?select=*,orders(*,order_lines(*))"), rows: 1 },
  { name: "reference table", call: get("/rest/v1/products?order=id"), rows: 2 },
  { name: "empty filter", call: orders("id=eq.-1"), rows: 0 },
  { name: "/api/v1 page", call: get("/api/v1/orders?sort=id"), rows: ORDERS, rowsIn: (body) => body.data },
  {
    name: "GraphQL list with totalCount",
    call: graphql("{ orders { totalCount edges { node { tenantId id } } } }"),
    rows: ORDERS,
    rowsIn: (body) => body.data?.orders?.edges,
  },
  {
    name: "GraphQL relation",
    call: graphql("{ tenants { edges { node { id name orders { tenantId id } } } } }"),
    rows: 1,
    rowsIn: (body) => body.data?.tenants?.edges,
  },
  {
    name: "insert",
    call: (tenant_id) => ({
      ...returning,
      method: "POST",
      path: "/rest/v1/orders",
      body: { tenant_id, id: 100, total: 1 },
    }),
    rows: 1,
  },
  {
    name: "insert of several",
    call: (tenant_id) => ({
      ...returning,
      method: "POST",
      path: "/rest/v1/orders",
      body: [101, 102, 103].map((id) => ({ tenant_id, id, total: 1 })),
    }),
    rows: 3,
  },
  {
    name: "insert for another tenant",
    call: (tenant) => ({ method: "POST", path: "/rest/v1/orders", body: { tenant_id: 1 + (tenant % 3), id: 200 } }),
    status: 403,
  },
  {
    name: "insert against a check",
    call: (tenant_id) => ({ method: "POST", path: "/rest/v1/orders", body: { tenant_id, id: 201, total: -1 } }),
    status: 400,
  },
  {
    name: "insert of a key that exists",
    call: (tenant_id) => ({ method: "POST", path: "/rest/v1/orders", body: { tenant_id, id: 100 } }),
    status: 409,
  },
  {
    name: "PATCH by key",
    call: (tenant) => ({
      ...returning,
      method: "PATCH",
      path: `/rest/v1/orders?tenant_id=eq.${tenant}&id=eq.100`,
      body: { note: "changed" },
    }),
    rows: 1,
  },
  {
    name: "PATCH by filter",
    call: () => ({ ...returning, method: "PATCH", path: "/rest/v1/orders?id=gt.100", body: { note: "all", total: 5 } }),
    rows: 3,
  },
  {
    name: "upsert",
    call: (tenant_id) => ({
      method: "POST",
      path: "/rest/v1/orders",
      body: { tenant_id, id: 100, total: 7 },
      prefer: `${REPRESENTATION},resolution=merge-duplicates`,
    }),
    rows: 1,
  },
  {
    name: "DELETE by key",
    call: () => ({ ...returning, method: "DELETE", path: "/rest/v1/orders?id=eq.100" }),
    rows: 1,
  },
  {
    name: "DELETE by filter",
    call: () => ({ ...returning, method: "DELETE", path: "/rest/v1/orders?id=gt.100" }),
    rows: 3,
  },
];

/** Journeys whose result depends on the server: a distributed table is refused, with the reason. */
export const DISTRIBUTED_JOURNEYS: readonly Journey[] = [
  { name: "live read", call: orders("order=id"), accept: "text/event-stream", status: 400 },
  { name: "shape", call: get("/v1/shape?table=orders&offset=-1"), status: 400 },
];
