import { expect, test } from "vitest";
import { applyPresence, presenceState, toChannelCode } from "../../../../studio/running/channel/channel-state.ts";

test("presence follows joins and leaves of several clients with one key", () => {
  let state = presenceState({ anna: { metas: [{ phx_ref: "1", page: "a" }] } });
  state = applyPresence(state, { joins: { anna: { metas: [{ phx_ref: "2" }] }, ben: { metas: [{ phx_ref: "3" }] } } });
  state = applyPresence(state, { joins: { ben: { metas: [{ phx_ref: "3" }] } } });
  expect(state).toEqual({ anna: [{ phx_ref: "1", page: "a" }, { phx_ref: "2" }], ben: [{ phx_ref: "3" }] });
  // A client that tracks another state leaves and joins in one message.
  state = applyPresence(state, {
    leaves: { anna: { metas: [{ phx_ref: "1" }] } },
    joins: { anna: { metas: [{ phx_ref: "4" }] } },
  });
  expect(state.anna).toEqual([{ phx_ref: "2" }, { phx_ref: "4" }]);
  expect(applyPresence(state, { leaves: { ben: { metas: [{ phx_ref: "3" }] } } })).not.toHaveProperty("ben");
});

test("the code joins the same channel", () => {
  expect(toChannelCode('a"b', true)).toContain('.channel("a\\"b", { config: { private: true } })');
  expect(toChannelCode("room", false)).toContain('.channel("room")\n');
});
