"""Recipes: one file for each training task, with its data, model, schedule, evaluation and figures."""

from minitransformer.checks import check_choice
from minitransformer.recipes.classify import ClassifyRecipe, DigitsRecipe
from minitransformer.recipes.parsing import PARSING
from minitransformer.recipes.recipe import Recipe
from minitransformer.recipes.text import WRITING_RECIPES, MaskedRecipe
from minitransformer.recipes.toy import TOY_RECIPES
from minitransformer.recipes.translation import DenoiseRecipe, TranslationRecipe

OTHERS = (MaskedRecipe, ClassifyRecipe, DigitsRecipe, DenoiseRecipe, TranslationRecipe)
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (*TOY_RECIPES, PARSING, *WRITING_RECIPES, *(kind() for kind in OTHERS))
}


def get_recipe(name: str) -> Recipe:
    """The recipe called `name`. Raises ValueError, which lists all recipes, for an unknown name."""
    return RECIPES[check_choice("task", name, RECIPES)]


__all__ = ["RECIPES", "Recipe", "get_recipe"]
