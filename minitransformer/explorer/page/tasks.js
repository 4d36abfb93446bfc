/* The right answers of the toy tasks, by rules that the library's tasks are held to. */
const Tasks = (() => {
  "use strict";

  const texts = (ids) => ids.map((id) => MODEL.tokens[id]);
  const idsOf = (parts) => parts.map((part) => MODEL.tokens.indexOf(part));

  const RULES = {
    copy: (source) => source,
    reverse: (source) => [...source].reverse(),
    sort: (source) => [...source].sort((a, b) => a - b),
    addition(source) {
      const question = /^(\d{1,4})\+(\d{1,4})$/.exec(texts(source).join(""));
      return question && idsOf([...String(Number(question[1]) + Number(question[2]))]);
    },
    /* "a3 k7 a": the digit of the pair whose letter comes last */
    recall(source) {
      const parts = texts(source), key = parts.at(-1);
      const found = parts.slice(0, -1).find((pair) => pair[0] === key);
      return found && /^[a-z]\d$/.test(found) ? idsOf([found[1]]) : null;
    },
  };

  /* The ids of the right answer to a source without eos, or null if the task is unknown or the source asks nothing. */
  const solve = (source) => RULES[MODEL.task]?.(source) ?? null;

  return { solve };
})();
