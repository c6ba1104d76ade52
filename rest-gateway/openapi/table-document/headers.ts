export const HEADERS = {
  contentRange: {
    description: "Which rows these are, and of how many when a count was asked for",
    schema: { type: "string", examples: ["0-24/3573458", "*/0"] },
  },
  location: {
    description: "Where the row that was written is",
    schema: { type: "string", examples: ["/films?id=eq.1"] },
  },
  preferenceApplied: { description: "The preferences that were heard", schema: { type: "string" } },
};
