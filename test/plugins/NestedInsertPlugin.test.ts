import { isInputObjectType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { useGeneratedSchema } from "./generated-schema.ts";

const TABLES = `
  create table public.customers (id bigint generated always as identity primary key, name text not null);
  create table public.orders (
    id bigint generated always as identity primary key, customer_id bigint not null references public.customers, code text not null unique
  );
  create table public.lines (
    order_id bigint not null references public.orders, place int not null, sku text not null, primary key (order_id, place)
  );
  create table public.people (id bigint generated always as identity primary key, name text, boss bigint references public.people);
  create table public.notes (order_id bigint primary key references public.orders, text text not null);
  create table public.logs (id bigint generated always as identity primary key, order_id bigint references public.orders, text text);
  create table public.plans (id bigint generated always as identity primary key, constructor_id bigint references public.people);
  comment on constraint plans_constructor_id_fkey on public.plans is '@nestedInsert forward';
  comment on constraint orders_customer_id_fkey on public.orders is '@nestedInsert';
  comment on constraint lines_order_id_fkey on public.lines is '@nestedInsert backward';
  comment on constraint notes_order_id_fkey on public.notes is '@nestedInsert';
  comment on table public.people is '@nestedInsert';
  grant all on all tables in schema public to authenticated;
`;
const generated = useGeneratedSchema({ template: "empty", sql: TABLES });

function fieldsOf(name: string): Record<string, string> | null {
  const type = generated.schema.getType(name);
  if (!isInputObjectType(type)) return null;
  return Object.fromEntries(Object.values(type.getFields()).map((field) => [field.name, String(field.type)]));
}

describe("the inputs of tables with @nestedInsert", () => {
  test("have a field for the row that a foreign key refers to, and one for the rows that refer to it", () => {
    expect(fieldsOf("CreateOrderInput")).toEqual({
      customerId: "ID",
      code: "String!",
      customer: "OrderCustomerNestedInput",
      lines: "[OrderLinesNestedInput!]",
      note: "OrderNoteNestedInput",
    });
    expect(fieldsOf("CreateCustomerInput")).toEqual({ name: "String!", orders: "[CustomerOrdersNestedInput!]" });
  });

  test("lack the columns that the row around them sets, and the way back", () => {
    expect(fieldsOf("OrderCustomerNestedInput")).toEqual({ name: "String!" });
    expect(fieldsOf("OrderLinesNestedInput")).toEqual({ place: "Int!", sku: "String!" });
    expect(fieldsOf("CustomerOrdersNestedInput")).toEqual({
      code: "String!",
      lines: "[OrderLinesNestedInput!]",
      note: "OrderNoteNestedInput",
    });
  });

  test("have one direction where the comment names it, and none without a comment", () => {
    expect(fieldsOf("CreateLineInput")).toEqual({ orderId: "ID!", place: "Int!", sku: "String!" });
    expect(fieldsOf("CreateLogInput")).toEqual({ orderId: "ID", text: "String" });
  });

  test("are recursive for a table that refers to itself, and a column keeps its name beside its relation", () => {
    expect(fieldsOf("CreatePersonInput")).toEqual({
      name: "String",
      boss: "ID",
      boss_: "PersonBossNestedInput",
      people: "[PersonPeopleNestedInput!]",
    });
    expect(fieldsOf("PersonPeopleNestedInput")).toEqual({ name: "String", people: "[PersonPeopleNestedInput!]" });
    expect(fieldsOf("PersonBossNestedInput")).toEqual({ name: "String", boss: "ID", boss_: "PersonBossNestedInput" });
  });

  test("have related rows with the names of methods of objects", () => {
    expect(fieldsOf("CreatePlanInput")).toEqual({ constructorId: "ID", constructor: "PlanConstructorNestedInput" });
  });

  test("of updates have columns only", () => {
    expect(fieldsOf("UpdateOrderInput")).toEqual({ customerId: "ID", code: "String" });
  });
});
