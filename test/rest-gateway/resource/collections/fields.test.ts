import { describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { openResources } from "../open-resources.ts";

const resources = useFixture(() =>
  openResources({
    template: "empty",
    sql: `
      create table public.films (id int primary key, headline_text text, old text, fresh text);
      insert into public.films values (1, 'One', 'o', 'f');
      grant select, insert, update on public.films to anon;
      comment on column public.films.headline_text is e'@formerName 1 main_title\\nThe headline.';
      comment on column public.films.old is '@until 1';
      comment on column public.films.fresh is '@since 2'`,
    settings: { REST_REQUIRE_APIKEY: "false" },
  }),
);

describe("a column's comment says in which versions it is a field, and under which name", () => {
  test("in responses, filters and writes", async () => {
    const v1 = { id: 1, main_title: "One", old: "o" };
    const v2 = { id: 1, headlineText: "One", fresh: "f" };
    expect((await resources.ask("/api/v1/films/1")).body).toEqual(v1);
    expect((await resources.ask("/api/v2/films/1")).body).toEqual(v2);
    expect((await resources.ask("/api/v1/films?main_title=One&sort=main_title")).body.data).toEqual([v1]);
    expect((await resources.ask("/api/v2/films?headlineText=One&fields=headlineText")).body.data).toEqual([
      { headlineText: "One" },
    ]);
    const written = await resources.ask("/api/v1/films/1", { method: "PATCH", body: { main_title: "Two" } });
    expect([written.status, written.body.main_title]).toEqual([200, "Two"]);
    for (const [version, name] of [
      ["v1", "headline_text"],
      ["v1", "fresh"],
      ["v2", "main_title"],
      ["v2", "old"],
    ]) {
      const refused = await resources.ask(`/api/${version}/films/1`, { method: "PATCH", body: { [name!]: "x" } });
      expect([name, refused.status]).toEqual([name, 400]);
    }
  });

  test("in OpenAPI", async () => {
    const documentOf = async (version: number) => {
      const { body } = await resources.ask(`/openapi.json?version=${version}`);
      return JSON.stringify(body);
    };
    expect(await documentOf(1)).toContain('"main_title"');
    expect(await documentOf(1)).not.toContain('"headline_text"');
    expect(await documentOf(2)).toContain('"headlineText"');
    expect(await documentOf(2)).not.toContain('"main_title"');
  });
});
