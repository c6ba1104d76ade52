import { createHmac } from "node:crypto";
import type { ServerContext } from "@modelcontextprotocol/server";

const ask = (message: string, property: string, type = "string") => ({
  method: "elicitation/create",
  params: {
    message,
    requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
  },
});
const form = (properties: object) => ({
  method: "elicitation/create",
  params: { message: "Please fill in", requestedSchema: { type: "object", properties } },
});
const WITH_DEFAULTS = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const titled = (value: string) => ({ const: value, title: `Option ${value}` });
const WITH_ENUMS = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: { type: "string", oneOf: ["value1", "value2", "value3"].map(titled) },
  legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: { type: "array", items: { anyOf: ["value1", "value2", "value3"].map(titled) } },
};
const sample = (text: string, maxTokens: number) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens },
});
const ROOTS = { method: "roots/list", params: {} };

type InputRequests = Readonly<Record<string, { readonly method: string; readonly params: object }>>;
type Round = { readonly requests: InputRequests; readonly hasState?: boolean };

/** The inputs that each tool requests, round by round. */
const ROUNDS: Readonly<Record<string, readonly Round[]>> = {
  test_input_required_result_elicitation: [{ requests: { user_name: ask("What is your name?", "name") } }],
  test_input_required_result_sampling: [
    { requests: { capital_question: sample("What is the capital of France?", 100) } },
  ],
  test_input_required_result_list_roots: [{ requests: { client_roots: ROOTS } }],
  test_input_required_result_request_state: [
    { requests: { confirm: ask("Please confirm", "ok", "boolean") }, hasState: true },
  ],
  test_input_required_result_tampered_state: [
    { requests: { confirm: ask("Please confirm", "ok", "boolean") }, hasState: true },
  ],
  test_input_required_result_multiple_inputs: [
    {
      requests: {
        user_name: ask("What is your name?", "name"),
        greeting: sample("Generate a greeting", 50),
        client_roots: ROOTS,
      },
      hasState: true,
    },
  ],
  test_input_required_result_multi_round: [
    { requests: { step1: ask("Step 1: What is your name?", "name") }, hasState: true },
    { requests: { step2: ask("Step 2: What is your favorite color?", "color") }, hasState: true },
  ],
  test_input_required_result_capabilities: [
    { requests: { user_name: ask("What is your name?", "name"), greeting: sample("Generate a greeting", 50) } },
  ],
  test_sampling: [{ requests: { answer: sample("Test prompt for sampling", 100) } }],
  test_elicitation: [{ requests: { user: ask("Please provide your information", "username") } }],
  test_elicitation_sep1034_defaults: [{ requests: { values: form(WITH_DEFAULTS) } }],
  test_elicitation_sep1330_enums: [{ requests: { values: form(WITH_ENUMS) } }],
  test_input_required_result_prompt: [{ requests: { user_context: ask("What context?", "context") } }],
};

export const INPUT_TOOLS = Object.keys(ROUNDS).filter((name) => !name.endsWith("_prompt"));

const CAPABILITY_OF: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** Returns the capabilities that the client has declared with this request. */
export function capabilitiesOf({ mcpReq }: Pick<ServerContext, "mcpReq">): Readonly<Record<string, unknown>> {
  const envelope = (mcpReq.envelope ?? {}) as Readonly<Record<string, Record<string, unknown> | undefined>>;
  return envelope["io.modelcontextprotocol/clientCapabilities"] ?? {};
}

const sign = (text: string) => `${text}.${createHmac("sha256", "fixture").update(text).digest("hex")}`;

/** Returns the next input to request of the client; null if all has been answered. Throws for a state that was changed. */
export function nextInput(name: string, { mcpReq }: ServerContext, invalid: (message: string) => Error): object | null {
  const rounds = ROUNDS[name]!;
  const state = mcpReq.requestState<string>();
  const at = state === undefined ? 0 : Number(state.split(".", 1)[0]);
  if (state !== undefined && state !== sign(String(at))) throw invalid("The request state is not one of this server.");
  const { requests } = rounds[at]!;
  const isAnswered = Object.keys(requests).every((key) => isAnswer(mcpReq.inputResponses?.[key]));
  const next = isAnswered ? at + 1 : at;
  const round = rounds[next];
  if (round === undefined) return null;
  const can = capabilitiesOf({ mcpReq });
  const supported = Object.entries(round.requests).filter(
    ([, { method }]) => name !== "test_input_required_result_capabilities" || can[CAPABILITY_OF[method]!] !== undefined,
  );
  const requestState = round.hasState ? { requestState: sign(String(next)) } : {};
  return { resultType: "input_required", inputRequests: Object.fromEntries(supported), ...requestState };
}

function isAnswer(response: unknown): boolean {
  if (typeof response !== "object" || response === null) return false;
  const { action, content, roots, role } = response as Readonly<Record<string, unknown>>;
  if (action !== undefined) return action === "accept" && typeof content === "object" && content !== null;
  return Array.isArray(roots) || typeof role === "string";
}
