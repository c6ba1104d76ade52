import { expect, test } from "vitest";
import { openSoak } from "../../bench/soak/soak.ts";
import { useFixture } from "../fixture.ts";
import { propertyRuns } from "../property-runs.ts";

/** The service remembers so much of each user, token and statement until its caches are full; a leak grows with each activity. */
const MOST_BYTES = 6_000;
const LEAK_BYTES = 50_000;
/** In fewer than a thousand, caches that fill look like a leak. */
const ACTIVITIES = Math.max(1_000, propertyRuns(2_000));

const soak = useFixture(openSoak);

test("no request fails and no resource grows under mixed load, and a leak would be detected", async () => {
  const course = await soak.run(15, { activities: ACTIVITIES });
  console.log(
    `${course.done} activities, ${course.bytesPerActivity.toFixed(0)} ± ${course.bytesPerActivityError.toFixed(0)} bytes each`,
  );
  expect(course.failures).toEqual({});
  expect(course.bytesPerActivity - course.bytesPerActivityError).toBeLessThan(MOST_BYTES);
  const warm = course.samples.slice(Math.floor(course.samples.length / 3));
  expect(warm.at(-1)!.openFiles! - warm[0]!.openFiles!).toBeLessThan(20);
  expect(warm.at(-1)!.sessions - warm[0]!.sessions).toBeLessThan(20);

  // A leak with each request, by which the same measure is tried.
  await soak.heap.evaluate(`
    globalThis.leaked = [];
    process.getBuiltinModule("node:diagnostics_channel").subscribe("http.server.request.start", ({ request }) => {
      leaked.push(new Array(${LEAK_BYTES / 8}).fill(request.url));
    })`);
  const leaking = await soak.run(5, { activities: 300 });
  expect(leaking.bytesPerActivity).toBeGreaterThan(MOST_BYTES);
});
