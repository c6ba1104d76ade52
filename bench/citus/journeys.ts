import { ORDERS, TENANTS } from "./schema.ts";

type Call = {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly prefer?: string;
  /** True without a token. */
  readonly isAnonymous?: boolean;
};

type JsonObject = { readonly [name: string]: JsonObject | undefined };

/**
 * A request of a tenant and its response. With `rows` the body must have that number of rows, and each of them must be of the tenant;
 * with `status` there are no rows, because the request is refused on purpose.
 */
export type Journey = {
  readonly name: string;
  readonly call: (tenant: number) => Call;
  readonly rows?: number;
  readonly status?: number;
  readonly accept?: string;
  /** A part of the body: a sum, whose row exists also if all rows are hidden, or the reason of a refusal. */
  readonly includes?: string;
  /** The count of all rows in Content-Range. */
  readonly count?: number;
  /** Finds the rows in a body that is no list of them. */
  readonly rowsIn?: (body: JsonObject) => unknown;
};

const REPRESENTATION = "return=representation";
const returning = { prefer: REPRESENTATION };
const get = (path: string) => () => ({ path });
const orders = (query: string) => get(`/rest/v1/orders?${query}`);

function graphql(query: string | ((tenant: number) => string)): (tenant: number) => Call {
  return (tenant) => {
    const text = typeof query === "string" ? query : query(tenant);
    return { method: "POST", path: "/graphql", body: { query: text } };
  };
}

const otherThan = (tenant: number) => 1 + (tenant % TENANTS.length);

/** They run in this order, each as all tenants. */
export const JOURNEYS: readonly Journey[] = [
  { name: "list", call: orders("order=id"), rows: ORDERS },
  { name: "own row by key", call: (tenant) => ({ path: `/rest/v1/orders?tenant_id=eq.${tenant}&id=eq.1` }), rows: 1 },
  { name: "another tenant's rows", call: (tenant) => ({ path: `/rest/v1/orders?tenant_id=neq.${tenant}` }), rows: 0 },
  { name: "filter and order", call: orders("total=gte.20&order=total.desc&limit=2"), rows: 2 },
  { name: "operators in, like, or", call: orders("id=in.(1,2)&note=like.order*&or=(id.eq.1,id.eq.2)"), rows: 2 },
  {
    name: "page with exact count",
    call: () => ({ path: "/rest/v1/orders?limit=2", prefer: "count=exact" }),
    rows: 2,
    count: ORDERS,
  },
  { name: "next page by offset", call: orders("order=id&limit=2&offset=2"), rows: 2 },
  { name: "next page by key", call: orders("order=id&id=gt.1&limit=2"), rows: 2 },
  { name: "operators not, is, neq", call: orders("note=not.is.null&id=neq.1"), rows: ORDERS - 1 },
  {
    name: "one row as an object",
    call: orders("id=eq.2"),
    accept: "application/vnd.pgrst.object+json",
    rows: 1,
    rowsIn: (body) => [body],
  },
  { name: "sum", call: orders("select=total.sum()"), rows: 1, includes: `"sum":${(10 * ORDERS * (ORDERS + 1)) / 2}` },
  { name: "groups", call: orders("select=note,id.count()&order=note"), rows: ORDERS, includes: '"count":1' },
  {
    name: "count of a relation",
    call: orders("select=tenant_id,id,order_lines(count)"),
    rows: ORDERS,
    includes: '"order_lines":[{"count":2}]',
  },
  {
    name: "columns of a relation",
    call: get("/rest/v1/order_lines?select=id,...products(product:name)"),
    rows: 2 * ORDERS,
    includes: '"product":"pen"',
  },
  {
    name: "filter by a relation",
    call: get("/rest/v1/order_lines?select=*,orders!inner(*)&orders.total=gte.30"),
    rows: 4,
  },
  { name: "function that returns rows", call: get("/rest/v1/rpc/large_orders?minimum=20&order=id"), rows: ORDERS - 1 },
  { name: "anonymous caller", call: () => ({ path: "/rest/v1/orders", isAnonymous: true }), status: 401 },
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
    name: "/api/v1 row by key",
    call: (tenant) => ({ path: `/api/v1/orders/${tenant},1` }),
    rows: 1,
    rowsIn: (body) => [body],
    includes: '"note":"order 1"',
  },
  {
    name: "/api/v1 row of another tenant",
    call: (tenant) => ({ path: `/api/v1/orders/${otherThan(tenant)},1` }),
    status: 404,
  },
  {
    name: "GraphQL list with totalCount",
    call: graphql("{ orders { totalCount edges { node { tenantId id } } } }"),
    rows: ORDERS,
    rowsIn: (body) => body.data?.orders?.edges,
    includes: `"totalCount":${ORDERS}`,
  },
  {
    name: "GraphQL page",
    call: graphql("{ orders(first: 2) { totalCount pageInfo { hasNextPage } edges { node { tenantId id } } } }"),
    rows: 2,
    rowsIn: (body) => body.data?.orders?.edges,
    includes: '"hasNextPage":true',
  },
  {
    name: "GraphQL row by key",
    call: graphql((tenant) => `{ order(tenantId: ${tenant}, id: 1) { tenantId id note } }`),
    rows: 1,
    rowsIn: (body) => [body.data?.order],
    includes: '"note":"order 1"',
  },
  {
    name: "GraphQL row of another tenant",
    call: graphql((tenant) => `{ order(tenantId: ${otherThan(tenant)}, id: 1) { tenantId id } }`),
    rows: 0,
    rowsIn: (body) => (body.data?.order ? [body.data.order] : []),
    includes: '"order":null',
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
    call: (tenant) => ({ method: "POST", path: "/rest/v1/orders", body: { tenant_id: otherThan(tenant), id: 200 } }),
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
    name: "upsert that ignores",
    call: (tenant_id) => ({
      method: "POST",
      path: "/rest/v1/orders",
      body: { tenant_id, id: 100, total: 8 },
      prefer: `${REPRESENTATION},resolution=ignore-duplicates`,
    }),
    rows: 0,
  },
  {
    name: "PUT",
    call: (tenant_id) => ({
      ...returning,
      method: "PUT",
      path: `/rest/v1/orders?tenant_id=eq.${tenant_id}&id=eq.100`,
      body: { tenant_id, id: 100, note: "put", total: 9 },
    }),
    rows: 1,
    includes: '"note":"put"',
  },
  {
    name: "PATCH of another tenant's row",
    call: (tenant) => ({
      ...returning,
      method: "PATCH",
      path: `/rest/v1/orders?tenant_id=eq.${otherThan(tenant)}&id=eq.1`,
      body: { note: "stolen" },
    }),
    rows: 0,
  },
  {
    name: "DELETE of another tenant's rows",
    call: (tenant) => ({ ...returning, method: "DELETE", path: `/rest/v1/orders?tenant_id=eq.${otherThan(tenant)}` }),
    rows: 0,
  },
  {
    name: "GraphQL createOrder",
    call: graphql(
      (tenant) =>
        `mutation { createOrder(input: { tenantId: ${tenant}, id: 110, note: "made", total: 3 }) { tenantId id note } }`,
    ),
    rows: 1,
    rowsIn: (body) => [body.data?.createOrder],
    includes: '"note":"made"',
  },
  {
    name: "createOrder for another tenant",
    call: graphql(
      (tenant) =>
        `mutation { createOrder(input: { tenantId: ${otherThan(tenant)}, id: 111, total: 3 }) { tenantId id } }`,
    ),
    rows: 0,
    rowsIn: (body) => (body.data?.createOrder ? [body.data.createOrder] : []),
    includes: '"errors"',
  },
  {
    name: "DELETE by key",
    call: () => ({ ...returning, method: "DELETE", path: "/rest/v1/orders?id=eq.100" }),
    rows: 1,
  },
  {
    name: "DELETE by filter",
    call: () => ({ ...returning, method: "DELETE", path: "/rest/v1/orders?id=gt.100" }),
    rows: 4,
  },
];

/** Journeys whose result depends on the server: a distributed table is refused, with the reason. */
export const DISTRIBUTED_JOURNEYS: readonly Journey[] = [
  {
    name: "live read",
    call: orders("order=id"),
    accept: "text/event-stream",
    status: 400,
    includes: "distributed by Citus",
  },
  {
    name: "shape",
    call: get("/v1/shape?table=orders&offset=-1"),
    status: 400,
    includes: "distributed by Citus",
  },
];
