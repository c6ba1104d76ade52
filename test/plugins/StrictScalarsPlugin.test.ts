import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create function public.hex(bytes bytea) returns text stable language sql as $$ select encode(bytes, 'hex') $$;
    grant usage on schema public to anon;
    grant execute on function public.hex to anon;`,
});

const hex = (bytes: unknown) =>
  generated.ask(anonymous, "query ($bytes: Base64EncodedBinary!) { hex(bytes: $bytes) }", { bytes });

describe("bytes", () => {
  test.each([
    ["", ""],
    ["AP8=", "00ff"],
    ["AP8", "00ff"],
    ["AP\r\n8=\n", "00ff"],
    ["+/8=", "fbff"],
    ["-_8", "fbff"],
  ])("that are written %j are %j", async (text, bytes) => {
    expect((await hex(text)).data).toEqual({ hex: bytes });
  });

  test.each(["@@", "A", "AP8=AP8=", "AP8@", "ÄP8=", 5])("that are written %j are refused", async (text) => {
    const { data, faults } = await hex(text);
    expect(data).toBeUndefined();
    expect(faults).toMatchObject([{ message: expect.stringContaining("Base64") }]);
  });

  test("are parsed in a document as well", async () => {
    expect((await generated.ask(anonymous, '{ hex(bytes: "AP8=") }')).data).toEqual({ hex: "00ff" });
  });
});
