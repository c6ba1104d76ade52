import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "@dataplan/pg/pg-sql2";
import { type GraphQLNamedType, type GraphQLSchema, getNamedType, isObjectType } from "grafast/graphql";
import { expect, test } from "vitest";
import { buildServableSchema } from "../../graphql/schemas/resilient-build.ts";
import { type FieldSource, sourceOf } from "../../plugins/field-sources.ts";
import { type ObjectValue, objectValueOf } from "../../plugins/object-values.ts";
import type { Codec } from "../../plugins/table.ts";
import { useFixture } from "../fixture.ts";
import { serveGraphQL } from "../graphql.ts";
import { NAMED_AS_OUR_SQL } from "../schemas/named-as-our-sql.ts";
import { PUBLIC_SCHEMAS, type PublicSchema } from "../schemas/public-schemas.ts";
import { openPreset, type PresetOptions } from "./open-preset.ts";

const fromFile = (file: string): PresetOptions => ({
  template: "empty",
  sql: readFileSync(join(import.meta.dirname, file), "utf8"),
});

const publicSchema = ({ name, load }: PublicSchema): PresetOptions => ({
  template: "empty",
  load,
  schemas: [name],
  sql: `
    grant usage on schema "${name}" to anon;
    grant all on all tables in schema "${name}" to anon;
    grant execute on all functions in schema "${name}" to anon;`,
});

const SCHEMAS: [title: string, options: PresetOptions][] = [
  ["the content service", {}],
  ["odd things", fromFile("odd-schema.sql")],
  ["clashing names", fromFile("clashing-schema.sql")],
  ["interfaces and references", fromFile("polymorphic-schema.sql")],
  ...[...Object.values(PUBLIC_SCHEMAS), NAMED_AS_OUR_SQL].map((schema): [string, PresetOptions] => [
    schema.title,
    publicSchema(schema),
  ]),
];

test.each(SCHEMAS)("every field has a source: %s", async (_, options) => {
  await using opened = await openPreset({ ...options, aggregates: true, nodes: true });
  const { schema, omitted } = await buildServableSchema(opened.preset, new AbortController().signal);
  expect(omitted.filter(({ reason }) => reason.includes("is not supported"))).toEqual([]);
  const fields = objectFieldsOf(schema);
  const members = new Set(fields.flatMap(memberNamesOf));
  expect(fields.filter(({ source }) => source).length).toBeGreaterThan(20);
  const without = fields.filter(({ name, source }) => !source && !members.has(name)).map(({ name }) => name);
  // A live query has the fields of queries.
  expect(without).toEqual(["Subscription.live"]);
});

type NamedField = {
  readonly name: string;
  readonly type: GraphQLNamedType;
  readonly source: FieldSource | null;
};

function objectFieldsOf(schema: GraphQLSchema): NamedField[] {
  const types = Object.values(schema.getTypeMap()).filter(isObjectType);
  return types
    .filter(({ name }) => !name.startsWith("__"))
    .flatMap((type) =>
      Object.values(type.getFields()).map((field) => ({
        name: `${type.name}.${field.name}`,
        type: getNamedType(field.type),
        source: sourceOf(field),
      })),
    );
}

/** The names of the fields that are parts of the field's value, such as `Interval.days`. */
function memberNamesOf({ type, source }: NamedField): string[] {
  const codec = source && ("resource" in source ? source.resource.codec : "codec" in source ? source.codec : null);
  const value = codec && objectValueOf(sql`null`, innermostCodecOf(codec));
  return value ? namesWithin(type, value) : [];
}

function namesWithin(type: GraphQLNamedType, { members }: ObjectValue): string[] {
  return Object.entries(members).flatMap(([name, member]) => {
    const inner = isObjectType(type) && getNamedType(type.getFields()[name]!.type);
    const object = member.kind === "leaf" ? null : member.kind === "object" ? member.object : member.item;
    return [`${type.name}.${name}`, ...(inner && object ? namesWithin(inner, object) : [])];
  });
}

function innermostCodecOf(codec: Codec): Codec {
  return codec.arrayOfCodec ? innermostCodecOf(codec.arrayOfCodec) : codec;
}

const graphql = useFixture(() =>
  serveGraphQL({
    template: "empty",
    before: `
      create function public.chance() returns int language sql volatile as 'select 4';
      comment on function public.chance is '@behavior +queryField';
      grant usage on schema public to anon; grant execute on function public.chance to anon`,
  }),
);

test("a function that may write is a query if its comment says so", async () => {
  expect((await graphql.ask("{ chance }")).data).toEqual({ chance: 4 });
});
