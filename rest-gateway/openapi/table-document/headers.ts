export const HEADERS = {
  contentRange: {
    description: "Which rows these are, and of how many when a count was asked for",
    schema: { type: "string", examples: ["0-24/3573458", "*/0"] },
  },
  link: {
    description: "Where the pages behind this one and the first one are, when it was asked for by a cursor",
    schema: { type: "string", examples: ['</films?limit=20&cursor=…>; rel="next"'] },
  },
  location: {
    description: "Where the row that was written is",
    schema: { type: "string", examples: ["/films?id=eq.1"] },
  },
  preferenceApplied: { description: "The preferences that were heard", schema: { type: "string" } },
};
