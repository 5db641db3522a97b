"""Answers: for one silo, which model to use, whose data it listened to, and whether that was worth it.

personalise  the one call
answer       what it returns
predictor    the model that serves: predictions for rows and tables
auto         evidence-weighted borrowing, for models that are linear in their parameters
average      the average over cross-validated candidates, for all other models
named        an algorithm that the user asks for, tuned
comparison   the named algorithms beside the answer
words        the answer in words
"""

from confrere.answers.answer import Answer, AnswerWarning
from confrere.answers.personalise import personalise
from confrere.answers.predictor import Predictor

__all__ = ["Answer", "AnswerWarning", "Predictor", "personalise"]
