import { setTimeout as sleep } from "node:timers/promises";
import { MissingRequiredClientCapabilityError, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { ExtendServer } from "../../../rest-gateway/mcp/index.ts";
import { capabilitiesOf, INPUT_TOOLS, nextInput } from "./conformance-input.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

const text = (value: string) => ({ type: "text" as const, text: value });
const image = { type: "image" as const, data: PNG, mimeType: "image/png" };
const embedded = (uri: string) => ({
  type: "resource" as const,
  resource: { uri, mimeType: "text/plain", text: "This is an embedded resource content." },
});

const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object" as const,
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const CONTENTS: Readonly<Record<string, readonly object[]>> = {
  test_simple_text: [text("This is a simple text response for testing.")],
  test_image_content: [image],
  test_audio_content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: [embedded("test://embedded-resource")],
  test_multiple_content_types: [text("Multiple content types test:"), image, embedded("test://mixed-content-resource")],
  test_tool_with_progress: [text("done")],
  test_tool_with_logging: [text("done")],
  test_missing_capability: [text("done")],
  json_schema_2020_12_tool: [text("done")],
};

const INPUT_PROMPT = "test_input_required_result_prompt";

const PROMPTS: Readonly<Record<string, (given: Readonly<Record<string, string>>) => readonly object[]>> = {
  test_simple_prompt: () => [text("This is a simple prompt for testing.")],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  test_prompt_with_embedded_resource: ({ resourceUri = "" }) => [embedded(resourceUri), text("Please process it.")],
  [INPUT_PROMPT]: () => [text("Prompt with the context.")],
  test_prompt_with_image: () => [image, text("Please analyze the image above.")],
};

/**
 * Serves the names that the protocol's own tests call, which no database has. It replaces our tools and resources on the
 * same server: transport, credentials, negotiation and errors are those of the service.
 */
export const conformanceFixture: ExtendServer = (server) => {
  server.registerCapabilities({ prompts: {}, logging: {}, resources: { subscribe: true } });
  const invalid = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  server.setRequestHandler("tools/list", () => ({
    tools: [...Object.keys(CONTENTS), ...INPUT_TOOLS, "test_error_handling"].sort().map((name) => ({
      name,
      description: `Fixture ${name}`,
      inputSchema: name === "json_schema_2020_12_tool" ? SCHEMA_2020_12 : { type: "object" as const, properties: {} },
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params: { name } }, context) => {
    const { mcpReq } = context;
    if (INPUT_TOOLS.includes(name)) {
      const text = `Hello, state-ok: ${JSON.stringify(mcpReq.inputResponses ?? {})}`;
      return (nextInput(name, context, invalid) ?? { content: [{ type: "text", text }] }) as never;
    }
    const can = capabilitiesOf(context);
    if (name === "test_missing_capability" && can.sampling === undefined) {
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    }
    for (const data of name === "test_tool_with_logging" ? ["started", "processing data", "completed"] : []) {
      await mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
    }
    const progressToken = mcpReq._meta?.progressToken;
    if (name === "test_error_handling") return { content: [text("This tool intentionally fails")], isError: true };
    for (const progress of name === "test_tool_with_progress" && progressToken !== undefined ? [0, 50, 100] : []) {
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(5);
    }
    return { content: (CONTENTS[name] ?? []) as never };
  });
  server.setRequestHandler("prompts/list", () => ({
    prompts: Object.keys(PROMPTS).map((name) => ({ name, description: `Fixture ${name}` })),
  }));
  server.setRequestHandler("prompts/get", ({ params }, context) => {
    const input = params.name === INPUT_PROMPT ? nextInput(INPUT_PROMPT, context, invalid) : null;
    if (input) return input as never;
    const contents = PROMPTS[params.name]!(params.arguments ?? {});
    return { messages: contents.map((content) => ({ role: "user", content })) as never };
  });
  server.setRequestHandler("resources/subscribe", () => ({}));
  server.setRequestHandler("resources/unsubscribe", () => ({}));
  server.setRequestHandler("resources/list", () => ({
    resources: [{ uri: "test://static-text", name: "text", description: "Fixture", mimeType: "text/plain" }],
  }));
  // The others are answered as by the service: there is none.
  const own = server as unknown as { _requestHandlers: Map<string, (request: unknown, context: unknown) => unknown> };
  const readOfService = own._requestHandlers.get("resources/read")!;
  server.setRequestHandler("resources/read", (async (request: { params: { uri: string } }, context: object) => {
    const { uri } = request.params;
    const [, id] = /^test:\/\/template\/(.*)\/data$/.exec(uri) ?? [];
    if (id !== undefined) return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify({ id }) }] };
    if (uri === "test://static-binary") return { contents: [{ uri, mimeType: "image/png", blob: PNG }] };
    if (uri === "test://static-text") return { contents: [{ uri, mimeType: "text/plain", text: "Static text." }] };
    return readOfService({ jsonrpc: "2.0", id: 0, method: "resources/read", ...request }, context);
  }) as never);
};
